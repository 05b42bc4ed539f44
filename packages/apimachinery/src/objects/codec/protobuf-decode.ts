import protobuf from "protobufjs/minimal.js";
import { messageOf } from "../errors/message.ts";
import type { FieldType, MessageField, TypeDescriptor } from "../schema/descriptor.ts";
import { goFieldName } from "../schema/go/go-names.ts";
import { scheme } from "../schema/scheme.ts";
import { sharedFields } from "./fields-v1.ts";
import { timeFromParts } from "./go-time.ts";
import { decodeQuantity, isZero, zeroOf } from "./json-decode.ts";
import { parseJsonText, setOwn, tooManyValues } from "./json-parse.ts";

type Reader = InstanceType<typeof protobuf.Reader>;
type Fields = Record<string, unknown>;
/** Reads one value after its tag; `earlier` is the value from a previous occurrence of the field. */
type Read = (reader: LimitedReader, earlier: unknown) => unknown;
type ReadMessage = (reader: LimitedReader, end: number, into: Fields) => Fields;

/** Maximum nesting of messages. */
export const maxNesting = 1000;

export interface ReadOptions {
  /** Limit for the elements of all lists and maps in total. */
  readonly maxElements?: number | undefined;
  /** Skips `metadata.managedFields`. */
  readonly omitsManagedFields?: boolean | undefined;
  /** Skips all fields of the object but its metadata. */
  readonly readsMetadataOnly?: boolean | undefined;
}

/** A reader with what it may still read. */
export class LimitedReader extends protobuf.BufferReader {
  nesting = 0;
  /** Number of list and map elements before decoding fails with 413. */
  elementsLeft: number;
  readonly omitsManagedFields: boolean;

  constructor(bytes: Uint8Array, { maxElements = Number.POSITIVE_INFINITY, omitsManagedFields = false }: ReadOptions = {}) {
    super(Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
    this.elementsLeft = maxElements;
    this.omitsManagedFields = omitsManagedFields;
  }
}

/**
 * Decodes a message to the canonical form of its type, the same as from JSON (`json-decode.ts`).
 * @param into has the first members of the object, which is returned
 * @throws Error for malformed bytes; StatusError 413 for too many elements
 */
export function readMessage(bytes: Uint8Array, type: TypeDescriptor, options?: ReadOptions, into: Fields = {}): Fields {
  const reader = new LimitedReader(bytes, options);
  const read = options?.readsMetadataOnly === true ? metadataReader(type) : messageReader(type);
  return readingInGoWords(() => read(reader, reader.len, into));
}

/** Reads the metadata of a kind. */
function metadataReader(type: TypeDescriptor): ReadMessage {
  const { one } = fieldwiseReader(type);
  return (reader, end, into) => {
    while (reader.pos < end) {
      const start = reader.pos;
      const tag = reader.uint32();
      if (tag !== metadataTag) {
        skip(reader, tag);
        continue;
      }
      reader.pos = start;
      one(reader, end, into);
    }
    return into;
  };
}

/** Field 1 of every kind. */
const metadataTag = 10;

/** Calls `read` and maps errors of protobufjs to those of upstream's generated code. */
export function readingInGoWords<T>(read: () => T): T {
  try {
    return read();
  } catch (err) {
    const message = messageOf(err);
    if (message.startsWith("index out of range")) throw new Error("unexpected EOF", { cause: err });
    if (message.startsWith("invalid varint encoding")) throw new Error("proto: integer overflow", { cause: err });
    throw err;
  }
}

/** Smaller messages are read in a few milliseconds. */
export const largeMessageBytes = 64 * 1024;

/** Reads a message field by field, to yield in between. */
interface FieldwiseReader {
  /** Reads one field. */
  readonly one: ReadMessage;
  /** Adds what is required and was not read. */
  readonly complete: (object: Fields) => void;
}

/** A pure cache: descriptors do not change. */
const fieldwiseReaders = new WeakMap<TypeDescriptor, FieldwiseReader>();

/** The reader of a message type, compiled once for each type. */
export function fieldwiseReader(type: TypeDescriptor): FieldwiseReader {
  return fieldwiseReaders.getOrInsertComputed(type, () => {
    const required = type.fields.filter((field) => field.required).map(({ name, type: of }) => ({ name, zero: zeroOf(of) }));
    return {
      one: compileReader(type, false),
      complete(object) {
        for (const { name, zero } of required) if (object[name] === undefined) object[name] = zero();
      },
    };
  });
}

/** A pure cache: descriptors do not change. */
const readers = new Map<TypeDescriptor, ReadMessage>();

const messageReader = (type: TypeDescriptor): ReadMessage => readers.getOrInsertComputed(type, makeMessageReader);

function makeMessageReader(type: TypeDescriptor): ReadMessage {
  let readFields: ReadMessage | undefined;
  return (reader, end, into) => {
    // Created lazily, because types can be recursive.
    readFields ??= compileReader(type);
    if (end > reader.len) throw new Error("unexpected EOF");
    if (++reader.nesting > maxNesting) throw new Error("message is nested too deep");
    readFields(reader, end, into);
    if (reader.pos !== end) throw new Error("unexpected EOF");
    reader.nesting--;
    return into;
  };
}

/**
 * Generates one function for each type with literal property names, so that V8 can use inline caches. The names come from
 * the type descriptors, never from input.
 * @param whole false: reads one field only
 */
function compileReader(type: TypeDescriptor, whole = true): ReadMessage {
  const cases = type.message.map((field, i) => {
    const tag = (field.number << 3) | fieldWireType(field);
    if (field.name === undefined) return `case ${tag}: read${i}(reader, object); break;`;
    const place = `object[${JSON.stringify(field.name)}]`;
    return `case ${tag}: value = read${i}(reader, ${place});
      if (value !== undefined) ${place} = value; else if (${place} !== undefined) delete ${place};
      break;`;
  });
  const required = type.fields.filter((field) => field.required);
  const zeros = required.map(({ name }, i) => {
    const place = `object[${JSON.stringify(name)}]`;
    return `if (${place} === undefined) ${place} = zero${i}();`;
  });
  const body = `return (reader, end, object) => {
    let value;
    ${whole ? "while" : "if"} (reader.pos < end) {
      const tag = reader.uint32();
      switch (tag) { ${cases.join("\n")} default: other(reader, tag); }
    }
    ${whole ? zeros.join("\n") : ""}
    return object;
  };`;
  const names = Object.fromEntries(type.message.map((field) => [field.number, goNameOf(type, field)]));
  const other = (reader: Reader, tag: number): void => skipUnknown(reader, tag, type.goName, names);
  const values = {
    ...named("read", type.message.map(fieldReader)),
    ...named(
      "zero",
      required.map((f) => zeroOf(f.type)),
    ),
    other,
  };
  // Cast: the source above is that of such a function.
  return new Function(...Object.keys(values), body)(...Object.values(values)) as ReadMessage;
}

function named<T>(prefix: string, values: readonly T[]): Record<string, T> {
  return Object.fromEntries(values.map((value, i) => [prefix + i, value]));
}

function goNameOf(type: TypeDescriptor, { name, type: fieldType }: MessageField): string {
  if (name !== undefined) return goFieldName(type.goName, name);
  return fieldType.kind === "struct" ? fieldType.struct.goName : ""; // inlined
}

/**
 * Skips an unknown field. Source: the code that gogo/protobuf generates
 * @param names known fields of the message by number
 * @throws Error for a known field, whose wire type must be wrong then, and for illegal tags
 */
export function skipUnknown(reader: Reader, tag: number, message: string, names: Readonly<Record<number, string>>): void {
  const number = tag >>> 3;
  const wireType = tag & 7;
  if (wireType === 4) throw new Error(`proto: ${message}: wiretype end group for non-group`);
  if (number === 0) throw new Error(`proto: ${message}: illegal tag 0 (wire type ${wireType})`);
  if (names[number] !== undefined) throw new Error(`proto: wrong wireType = ${wireType} for field ${names[number]}`);
  skip(reader, tag);
}

/** Skips a value; a group with its contents. */
function skip(reader: Reader, tag: number): void {
  let depth = 0;
  for (let next = tag; ; next = reader.uint32()) {
    switch (next & 7) {
      case 0:
        reader.skip();
        break;
      case 1:
        reader.skip(8);
        break;
      case 2:
        reader.skip(reader.uint32());
        break;
      case 3:
        depth++;
        break;
      case 4:
        if (--depth < 0) throw new Error("proto: unexpected end of group");
        break;
      case 5:
        reader.skip(4);
        break;
      default:
        throw new Error(`proto: illegal wireType ${next & 7}`);
    }
    if (depth === 0) return;
  }
}

function fieldWireType({ name, type }: MessageField): 0 | 1 | 2 {
  return name !== undefined && type.kind === "list" && !type.wrapped ? wireTypeOf(type.element) : wireTypeOf(type);
}

/** True when fields of this type are `metadata.managedFields`. */
export function areManagedFields(type: FieldType): boolean {
  return type.kind === "list" && type.element.kind === "struct" && type.element.struct.goName === "ManagedFieldsEntry";
}

/** The reader returns the field's value after this occurrence; undefined means absent. */
function fieldReader(field: MessageField): Read {
  const { name, type } = field;
  if (name === undefined) {
    if (type.kind !== "struct") throw new Error("only structs are inlined");
    const read = messageReader(type.struct);
    // Cast: readers of messages and maps are passed what they returned before.
    return (reader, object) => read(reader, reader.uint32() + reader.pos, object as Fields);
  }
  if (type.kind === "list" && !type.wrapped) {
    const element = valueReader(type.element);
    const isOmissible = areManagedFields(type);
    return (reader, list) => {
      if (isOmissible && reader.omitsManagedFields) {
        reader.skip(reader.uint32());
        return undefined;
      }
      const value = element(reader, undefined) ?? null;
      if (--reader.elementsLeft < 0) throw tooManyValues();
      if (!Array.isArray(list)) return [value];
      list.push(value);
      return list;
    };
  }
  if (type.kind === "map") {
    const { value } = type;
    return (reader, map = {}) => {
      readMapEntry(reader, map as Fields, value); // cast: readers of messages and maps are passed what they returned before
      return map;
    };
  }
  const read = valueReader(type);
  const drops = !field.pointer && !field.required && (type.kind === "struct" || field.omitEmpty);
  if (!drops) return (reader, earlier) => read(reader, earlier) ?? earlier;
  if (type.kind === "string") return (reader) => readString(reader) || undefined;
  return (reader, earlier) => {
    const value = read(reader, earlier);
    if (value === undefined) return earlier;
    return isZero(value, type) ? undefined : value;
  };
}

/** @param reader of a Buffer */
export function readString(reader: Reader): string {
  const length = reader.uint32();
  const start = reader.pos;
  if (length > reader.len - start) throw new Error("unexpected EOF");
  reader.pos = start + length;
  const bytes = reader.buf as Buffer; // cast: readers are made from Buffers
  return knownText(bytes, start, length) ?? bytes.toString("utf8", start, start + length);
}

function readMapEntry(reader: LimitedReader, map: Fields, valueType: FieldType): void {
  const end = reader.uint32() + reader.pos;
  if (end > reader.len) throw new Error("unexpected EOF");
  if (--reader.elementsLeft < 0) throw tooManyValues();
  let key = "";
  let value: unknown;
  const read = mapValueReader(valueType);
  const wanted = wireTypeOf(valueType);
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (tag === 10) key = readString(reader);
    else if (tag >>> 3 === 2 && (tag & 7) === wanted) value = read(reader, undefined);
    else skip(reader, tag);
  }
  if (reader.pos !== end) throw new Error("unexpected EOF");
  setOwn(map, key, value ?? zeroOf(valueType)() ?? null);
}

/** A pure cache: types of fields do not change. */
const mapValueReaders = new WeakMap<FieldType, Read>();

function mapValueReader(type: FieldType): Read {
  let read = mapValueReaders.get(type);
  if (read === undefined) {
    read = valueReader(type);
    mapValueReaders.set(type, read);
  }
  return read;
}

function wireTypeOf(type: FieldType): 0 | 1 | 2 {
  switch (type.kind) {
    case "bool":
    case "int32":
    case "int64":
      return 0;
    case "float64":
      return 1;
    default:
      return 2;
  }
}

function valueReader(type: FieldType): Read {
  switch (type.kind) {
    case "string":
      return readString;
    case "bool":
      return (reader) => readInt64(reader) !== 0;
    case "int32":
      return (reader) => reader.int32();
    case "int64":
      return readInt64;
    case "float64":
      return (reader) => reader.double();
    case "bytes":
      return (reader) => {
        const bytes = reader.bytes();
        return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
      };
    case "struct": {
      const read = messageReader(type.struct);
      // Cast: readers of messages and maps are passed what they returned before.
      return (reader, earlier) => read(reader, reader.uint32() + reader.pos, (earlier ?? {}) as Fields);
    }
    case "list": {
      const element = valueReader(type.element);
      return (reader) => {
        const list: unknown[] = [];
        eachField(reader, (tag) => {
          if (tag !== 10) return false;
          list.push(element(reader, undefined));
          return true;
        });
        return list;
      };
    }
    case "time":
      return (reader) => {
        const { seconds } = readTimestamp(reader);
        return seconds === undefined ? undefined : timeFromParts(seconds);
      };
    case "microTime":
      return (reader) => {
        const { seconds, nanos } = readTimestamp(reader);
        return seconds === undefined ? undefined : timeFromParts(seconds, Math.trunc(nanos / 1000));
      };
    case "quantity":
      return (reader) => decodeQuantity(readText(reader) || "0");
    case "intOrString":
      return readIntOrString;
    case "raw":
    case "json":
      return (reader) => readRaw(reader, parseJsonText);
    case "fieldsV1":
      return (reader) => readRaw(reader, (text) => (text.startsWith("{") ? sharedFields(text) : parseJsonText(text)));
    case "schemaOrArray":
      return (reader) => readSchemaChoice(reader, false);
    case "schemaOrStrings":
      return (reader) => readSchemaChoice(reader, true);
    case "schemaOrBool":
      return readSchemaOrBool;
    default:
      throw new Error(`${type.kind} has no protobuf form`);
  }
}

/** Calls `read` for each field of a message; a field is skipped when `read` returns false. */
function eachField(reader: Reader, read: (tag: number) => boolean): void {
  const end = reader.uint32() + reader.pos;
  if (end > reader.len) throw new Error("unexpected EOF");
  while (reader.pos < end) {
    const tag = reader.uint32();
    if (!read(tag)) skip(reader, tag);
  }
  if (reader.pos !== end) throw new Error("unexpected EOF");
}

/** `seconds` is undefined for an empty message, which is Go's zero time. */
function readTimestamp(reader: Reader): { seconds: number | undefined; nanos: number } {
  let seconds: number | undefined;
  let nanos = 0;
  eachField(reader, (tag) => {
    if (tag === 8) seconds = Number(readInt64(reader));
    else if (tag === 16) nanos = reader.int32();
    else return false;
    seconds ??= 0;
    return true;
  });
  return { seconds, nanos };
}

function readText(reader: Reader): string {
  let text = "";
  eachField(reader, (tag) => {
    if (tag !== 10) return false;
    text = readString(reader);
    return true;
  });
  return text;
}

function readIntOrString(reader: Reader): number | string {
  let isText = false;
  let number = 0;
  let text = "";
  eachField(reader, (tag) => {
    if (tag === 8) isText = readInt64(reader) === 1;
    else if (tag === 16) number = reader.int32();
    else if (tag === 26) text = reader.string();
    else return false;
    return true;
  });
  return isText ? text : number;
}

/** The value of a message of one JSON text. */
export function readRaw(reader: Reader, parse: (text: string) => unknown): unknown {
  let value: unknown;
  eachField(reader, (tag) => {
    if (tag !== 10) return false;
    const text = reader.string();
    value = text === "" ? undefined : (parse(text) ?? undefined);
    return true;
  });
  return value;
}

function readSchema(reader: LimitedReader): Fields {
  return messageReader(scheme.type("apiextensions/v1.JSONSchemaProps")!)(reader, reader.uint32() + reader.pos, {});
}

function readSchemaChoice(reader: LimitedReader, strings: boolean): unknown {
  let schema: Fields | undefined;
  const list: unknown[] = [];
  eachField(reader, (tag) => {
    if (tag === 10) schema = readSchema(reader);
    else if (tag === 18) list.push(strings ? reader.string() : readSchema(reader));
    else return false;
    return true;
  });
  return list.length > 0 ? list : schema;
}

function readSchemaOrBool(reader: LimitedReader): unknown {
  let allows = false;
  let schema: Fields | undefined;
  eachField(reader, (tag) => {
    if (tag === 8) allows = readInt64(reader) !== 0;
    else if (tag === 18) schema = readSchema(reader);
    else return false;
    return true;
  });
  return schema ?? allows;
}

/** A varint as a signed 64-bit number; bigint only beyond 2^53. */
function readInt64(reader: Reader): number | bigint {
  const { buf } = reader;
  let value = 0;
  let scale = 1;
  for (let i = 0; i < 7; i++) {
    const byte = buf[reader.pos++];
    if (byte === undefined || reader.pos > reader.len) throw new Error("unexpected EOF");
    value += (byte & 0x7f) * scale;
    if (byte < 0x80) return value;
    scale *= 128;
  }
  let big = BigInt(value);
  for (let shift = 49n; shift < 70n; shift += 7n) {
    const byte = buf[reader.pos++];
    if (byte === undefined || reader.pos > reader.len) throw new Error("unexpected EOF");
    big |= BigInt(byte & 0x7f) << shift;
    if (byte < 0x80) {
      const signed = BigInt.asIntN(64, big);
      return BigInt.asIntN(54, signed) === signed ? Number(signed) : signed;
    }
  }
  throw new Error("proto: integer overflow");
}

/**
 * Cache of short strings that occur repeatedly, e.g. enumeration values, labels and names. A lookup by bytes is faster
 * than creating a new string, and saves memory.
 */
const slots: (string | undefined)[] = new Array(4096).fill(undefined);
const longest = 32;

/** @returns the string for the bytes; undefined for long or non-ASCII text */
function knownText(bytes: Buffer, start: number, length: number): string | undefined {
  if (length > longest) return undefined;
  let hash = length;
  for (let i = 0; i < length; i++) {
    const byte = bytes[start + i]!;
    if (byte > 0x7f) return undefined;
    hash = (Math.imul(hash, 31) + byte) | 0;
  }
  const slot = hash & (slots.length - 1);
  const known = slots[slot];
  if (known !== undefined && known.length === length && isAt(bytes, start, known)) return known;
  const text = bytes.toString("latin1", start, start + length);
  slots[slot] = text;
  return text;
}

function isAt(bytes: Buffer, start: number, text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) !== bytes[start + i]) return false;
  return true;
}
