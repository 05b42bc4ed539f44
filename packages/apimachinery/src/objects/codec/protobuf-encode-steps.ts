/** Encodes protobuf messages of many values in steps, with the same result as `protobuf-encode.ts`. */
import type { Steps } from "../../process/event-loop/steps.ts";
import { valuesPerStep } from "../meta/deep-equal.ts";
import type { FieldType, MessageField, TypeDescriptor } from "../schema/descriptor.ts";
import { sortedKeysInSteps } from "./json-encode.ts";
import { BackWriter, fieldWriters, tagOf, valueWriter, type Write } from "./protobuf-encode.ts";

type Fields = Record<string, unknown>;

/** As `encodeMessage`. */
export function* messageBytesInSteps(object: Fields, type: TypeDescriptor): Steps<Buffer> {
  const writing = new SteppedWriting();
  yield* writing.message(object, type);
  return writing.writer.finish();
}

/** A pure cache: descriptors do not change. */
const writersOfFields = new WeakMap<TypeDescriptor, Write[]>();
const nothing: Fields = Object.freeze({});

class SteppedWriting {
  /** Not shared, because other messages may be encoded between two steps. */
  readonly writer = new BackWriter();
  #count = 0;

  /** True when it is time to yield after one more value. */
  #isDue(): boolean {
    return ++this.#count % valuesPerStep === 0;
  }

  *message(object: Fields, type: TypeDescriptor): Steps<void> {
    const writers = writersOfFields.getOrInsertComputed(type, fieldWriters);
    for (let i = type.message.length - 1; i >= 0; i--) {
      const field = type.message[i]!;
      const value = field.name === undefined ? object : object[field.name];
      const inner = typeof value === "object" && value !== null ? this.#inner(field, value) : undefined;
      if (inner === undefined) writers[i]?.(this.writer, value, object);
      else yield* inner;
      if (this.#isDue()) yield;
    }
  }

  /** @returns undefined for a value that is written at once */
  #inner({ name, number, type }: MessageField, value: object): Steps<void> | undefined {
    // Cast: decoded, or made by a program, as the descriptor says.
    if (type.kind === "struct") return this.#struct(value as Fields, type.struct, number);
    // Cast: decoded, or made by a program, as the descriptor says.
    if (name !== undefined && type.kind === "list" && !type.wrapped) return this.#list(value as unknown[], type.element, number);
    // Cast: decoded, or made by a program, as the descriptor says.
    return type.kind === "map" ? this.#map(value as Fields, type.value, number) : undefined;
  }

  *#struct(value: Fields, type: TypeDescriptor, number: number): Steps<void> {
    const end = this.writer.mark;
    yield* this.message(value, type);
    this.#endOf(end, number);
  }

  *#list(items: readonly unknown[], type: FieldType, number: number): Steps<void> {
    const write = valueWriter(type, number);
    for (let i = items.length - 1; i >= 0; i--) {
      // Cast: decoded, or made by a program, as the descriptor says.
      if (type.kind === "struct") yield* this.#struct((items[i] ?? nothing) as Fields, type.struct, number);
      else write(this.writer, items[i], nothing);
      if (this.#isDue()) yield;
    }
  }

  *#map(map: Fields, type: FieldType, number: number): Steps<void> {
    const keys = yield* sortedKeysInSteps(map);
    const write = valueWriter(type, 2);
    for (let i = keys.length - 1; i >= 0; i--) {
      const key = keys[i]!;
      const end = this.writer.mark;
      // Cast: decoded, or made by a program, as the descriptor says.
      if (type.kind === "struct") yield* this.#struct((map[key] ?? nothing) as Fields, type.struct, 2);
      else write(this.writer, map[key], nothing);
      this.writer.string(key);
      this.writer.uint32(10);
      this.#endOf(end, number);
      if (this.#isDue()) yield;
    }
  }

  /** Writes length and tag of what was written since the mark. */
  #endOf(mark: number, number: number): void {
    this.writer.uint32(this.writer.mark - mark);
    this.writer.uint32(tagOf(number, 2));
  }
}
