/** Decodes protobuf messages of many values in steps, with the same result as `protobuf-decode.ts`. */
import type { Steps } from "../../process/event-loop/steps.ts";
import type { MessageField, TypeDescriptor } from "../schema/descriptor.ts";
import { sharedFieldsInSteps } from "./fields-v1.ts";
import { isZero } from "./json-decode.ts";
import { parseJsonInSteps, tooManyValues } from "./json-parse.ts";
import {
  areManagedFields,
  fieldwiseReader,
  LimitedReader,
  largeMessageBytes,
  maxNesting,
  type ReadOptions,
  readingInGoWords,
  readRaw,
} from "./protobuf-decode.ts";

type Fields = Record<string, unknown>;

/** Bytes that are read between two yields: at most some 3,000 entries of a map. */
const bytesPerStep = 32 * 1024;

/** As `readMessage`, in steps for large messages. */
export function* readMessageInSteps(bytes: Uint8Array, type: TypeDescriptor, options?: ReadOptions): Steps<Fields> {
  const reader = new LimitedReader(bytes, options);
  try {
    return yield* new SteppedReader(reader).message(reader.len, type, {});
  } catch (err) {
    return readingInGoWords(() => {
      throw err;
    });
  }
}

/** Yields between the fields of large messages; a large map is many fields, one for each entry. */
class SteppedReader {
  readonly #reader: LimitedReader;
  #yieldedAt = 0;

  constructor(reader: LimitedReader) {
    this.#reader = reader;
  }

  *message(end: number, type: TypeDescriptor, into: Fields): Steps<Fields> {
    const reader = this.#reader;
    const { one, complete } = fieldwiseReader(type);
    if (end > reader.len) throw new Error("unexpected EOF");
    if (++reader.nesting > maxNesting) throw new Error("message is nested too deep");
    while (reader.pos < end) {
      const start = reader.pos;
      const tag = reader.uint32();
      const inner = this.#largeInner(type, tag);
      if (inner === undefined) {
        reader.pos = start;
        one(reader, end, into);
      } else {
        yield* this.#inner(inner, into);
      }
      if (reader.pos - this.#yieldedAt > bytesPerStep) {
        this.#yieldedAt = reader.pos;
        yield;
      }
    }
    if (reader.pos !== end) throw new Error("unexpected EOF");
    complete(into);
    reader.nesting--;
    return into;
  }

  /** The field when a large struct comes next, alone or as an item of a list, or a large JSON text. */
  #largeInner(type: TypeDescriptor, tag: number): MessageField | undefined {
    if ((tag & 7) !== 2) return undefined;
    const field = type.message.find(({ number }) => number === tag >>> 3);
    if (field === undefined || (structOf(field) === undefined && !isJsonText(field))) return undefined;
    if (this.#reader.omitsManagedFields && areManagedFields(field.type)) return undefined;
    const { pos } = this.#reader;
    const isLarge = this.#reader.uint32() >= largeMessageBytes;
    this.#reader.pos = pos;
    return isLarge ? field : undefined;
  }

  *#inner(field: MessageField, into: Fields): Steps<void> {
    const reader = this.#reader;
    if (isJsonText(field)) {
      const text = readRaw(reader, (text) => text) as string | undefined; // cast: `readRaw` returns what the function given to it returns
      if (text === undefined) return;
      const isFields = field.type.kind === "fieldsV1" && text.startsWith("{");
      const value = (yield* isFields ? sharedFieldsInSteps(text) : parseJsonInSteps(text)) ?? undefined;
      if (value !== undefined) into[field.name] = value;
      return;
    }
    const struct = structOf(field)!;
    const end = reader.uint32() + reader.pos;
    const { name, type } = field;
    if (name === undefined) {
      yield* this.message(end, struct, into);
    } else if (type.kind === "list") {
      const value = yield* this.message(end, struct, {});
      if (--reader.elementsLeft < 0) throw tooManyValues();
      if (Array.isArray(into[name])) into[name].push(value);
      else into[name] = [value];
    } else {
      // Cast: `into` holds here what an earlier message of this field was read to.
      const value = yield* this.message(end, struct, (into[name] ?? {}) as Fields);
      if (!field.pointer && !field.required && isZero(value, type)) delete into[name];
      else into[name] = value;
    }
  }
}

/** True when the field is a single JSON text, such as the fields of a manager. */
function isJsonText(field: MessageField): field is MessageField & { readonly name: string } {
  return field.name !== undefined && ["fieldsV1", "raw", "json"].includes(field.type.kind);
}

function structOf({ name, type }: MessageField): TypeDescriptor | undefined {
  if (type.kind === "struct") return type.struct;
  return name !== undefined && type.kind === "list" && !type.wrapped && type.element.kind === "struct"
    ? type.element.struct
    : undefined;
}
