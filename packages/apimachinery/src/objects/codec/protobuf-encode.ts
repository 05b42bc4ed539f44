import type { FieldType, MessageField, TypeDescriptor } from "../schema/descriptor.ts";
import { scheme } from "../schema/scheme.ts";
import { textOfFields } from "./fields-v1.ts";
import { timeParts } from "./go-time.ts";
import { encodeRaw, rawJson, sortedKeys } from "./json-encode.ts";

type Fields = Record<string, unknown>;
/** Writes a value with its tag, backwards (see BackWriter). */
export type Write = (writer: BackWriter, value: unknown, parent: Fields) => void;
/** Writes the fields of a message, without length prefix. */
type WriteMessage = (writer: BackWriter, object: Fields) => void;

const nothing: Fields = Object.freeze({});
/** A pure cache: descriptors do not change. */
const writers = new Map<TypeDescriptor, WriteMessage>();

/** Writes a struct as Kubernetes' generated code does: fields that are not pointers are always written, maps sorted by key. */
export function writeMessage(writer: BackWriter, object: Fields, type: TypeDescriptor): void {
  messageWriter(type)(writer, object);
}

function messageWriter(type: TypeDescriptor): WriteMessage {
  let write = writers.get(type);
  if (write !== undefined) return write;
  let compiled: WriteMessage | undefined;
  write = (writer, object) => {
    // Created lazily, because types can be recursive.
    compiled ??= compileWriter(type);
    compiled(writer, object);
  };
  writers.set(type, write);
  return write;
}

/**
 * Generates one function for each type with literal property names, so that V8 can use inline caches. The names come from
 * the type descriptors, never from input.
 */
function compileWriter(type: TypeDescriptor): WriteMessage {
  const fields = type.message.toReversed();
  const lines = fields.map(({ name }, i) => {
    const value = name === undefined ? "undefined" : `object[${JSON.stringify(name)}]`;
    return `write${i}(writer, ${value}, object);`;
  });
  const parameters = fields.map((_, i) => `write${i}`);
  const body = `return (writer, object) => {\n${lines.join("\n")}\n};`;
  // Cast: the source above is that of such a function.
  return new Function(...parameters, body)(...fields.map(fieldWriter)) as WriteMessage;
}

/** Writes a nested message with its tag and length. */
function nested(writer: BackWriter, tag: number, writeInside: () => void): void {
  const end = writer.mark;
  writeInside();
  writer.uint32(writer.mark - end);
  writer.uint32(tag);
}

/** Writers of a message's fields, in their order. */
export function fieldWriters(type: TypeDescriptor): Write[] {
  return type.message.map(fieldWriter);
}

function fieldWriter(field: MessageField): Write {
  if (field.name === undefined) {
    if (field.type.kind !== "struct") throw new Error("only structs are inlined");
    const inner = messageWriter(field.type.struct);
    const tag = tagOf(field.number, 2);
    return (writer, _, parent) => nested(writer, tag, () => inner(writer, parent));
  }
  const write = valueWriter(field.type, field.number);
  const type = field.type;
  if (type.kind === "list" && !type.wrapped) {
    const element = valueWriter(type.element, field.number);
    return (writer, value) => {
      if (Array.isArray(value)) writeItems(writer, value, element);
    };
  }
  if (field.pointer) {
    return (writer, value, parent) => {
      if (value !== undefined && value !== null) write(writer, value, parent);
    };
  }
  if (type.kind === "bytes") {
    return (writer, value, parent) => {
      if (typeof value === "string" && value !== "") write(writer, value, parent);
    };
  }
  if (type.kind === "list") {
    return (writer, value, parent) => {
      if (Array.isArray(value) && value.length > 0) write(writer, value, parent);
    };
  }
  return write;
}

/** The key of a field before its value. @param wireType 0 varint, 1 eight octets, 2 length-delimited */
export function tagOf(number: number, wireType: 0 | 1 | 2): number {
  return (number << 3) | wireType;
}

/** The writer always writes a value; null and undefined become the type's zero value. */
export function valueWriter(type: FieldType, number: number): Write {
  const bytesTag = tagOf(number, 2);
  const varintTag = tagOf(number, 0);
  switch (type.kind) {
    case "string":
      return (writer, value) => {
        writer.string(typeof value === "string" ? value : "");
        writer.uint32(bytesTag);
      };
    case "bool":
      return (writer, value) => {
        writer.bool(value === true);
        writer.uint32(varintTag);
      };
    case "int32":
      return (writer, value) => {
        writer.int64(typeof value === "number" ? value : 0);
        writer.uint32(varintTag);
      };
    case "int64":
      return (writer, value) => {
        writer.int64(typeof value === "number" || typeof value === "bigint" ? value : 0);
        writer.uint32(varintTag);
      };
    case "float64": {
      const tag = tagOf(number, 1);
      return (writer, value) => {
        writer.double(typeof value === "number" ? value : 0);
        writer.uint32(tag);
      };
    }
    case "bytes":
      return (writer, value) => {
        const bytes = Buffer.from(typeof value === "string" ? value : "", "base64");
        writer.bytes(bytes);
        writer.uint32(bytes.length);
        writer.uint32(bytesTag);
      };
    case "map": {
      const inner = valueWriter(type.value, 2);
      return (writer, value) => {
        if (typeof value !== "object" || value === null) return;
        const map = value as Fields; // cast: decoded, or made by a program, as the descriptor says
        const keys = sortedKeys(map);
        for (let i = keys.length - 1; i >= 0; i--) {
          const key = keys[i]!;
          const end = writer.mark;
          inner(writer, map[key], nothing);
          writer.string(key);
          writer.uint32(10);
          writer.uint32(writer.mark - end);
          writer.uint32(bytesTag);
        }
      };
    }
    default: {
      const inner = messageBody(type);
      return (writer, value) => {
        const end = writer.mark;
        inner(writer, value);
        writer.uint32(writer.mark - end);
        writer.uint32(bytesTag);
      };
    }
  }
}

/** Writes the fields of the message that represents a type on the wire. */
function messageBody(type: FieldType): (writer: BackWriter, value: unknown) => void {
  switch (type.kind) {
    case "struct": {
      const write = messageWriter(type.struct);
      return (writer, value) => write(writer, (value ?? nothing) as Fields); // cast: decoded, or made by a program, as the descriptor says
    }
    case "list": {
      // A named slice type is encoded as a message with its elements as field 1.
      const element = valueWriter(type.element, 1);
      return (writer, value) => {
        if (Array.isArray(value)) writeItems(writer, value, element);
      };
    }
    case "time":
      return (writer, value) => {
        if (typeof value !== "string") return; // Go's zero time is an empty message
        writeTimestamp(writer, timeParts(value).seconds, 0);
      };
    case "microTime":
      return (writer, value) => {
        if (typeof value !== "string") return;
        const { seconds, micros } = timeParts(value);
        writeTimestamp(writer, seconds, micros * 1000);
      };
    case "quantity":
      return (writer, value) => {
        writer.string(value === undefined || value === null ? "0" : String(value));
        writer.uint32(10);
      };
    case "intOrString":
      return (writer, value) => {
        const isText = typeof value === "string";
        writer.string(isText ? value : "");
        writer.uint32(26);
        writer.int64(typeof value === "number" ? value : 0);
        writer.uint32(16);
        writer.bool(isText);
        writer.uint32(8);
      };
    case "raw":
    case "json":
      return (writer, value) => {
        if (value !== undefined && value !== null) writeText(writer, encodeRaw(value));
      };
    case "fieldsV1":
      return (writer, value) => {
        if (value !== undefined && value !== null) writeText(writer, textOfFields(value) ?? rawJson(value));
      };
    case "schemaOrArray":
      return (writer, value) => writeSchemaChoice(writer, value, false);
    case "schemaOrStrings":
      return (writer, value) => writeSchemaChoice(writer, value, true);
    case "schemaOrBool":
      return (writer, value) => {
        // Cast: decoded, or made by a program, as the descriptor says.
        if (typeof value === "object" && value !== null) writeSchema(writer, 2, value as Fields);
        writer.bool(value !== false && value !== undefined && value !== null);
        writer.uint32(8);
      };
    default:
      throw new Error(`${type.kind} has no protobuf form`);
  }
}

function writeItems(writer: BackWriter, items: readonly unknown[], write: Write): void {
  for (let i = items.length - 1; i >= 0; i--) write(writer, items[i], nothing);
}

function writeText(writer: BackWriter, text: string): void {
  writer.string(text);
  writer.uint32(10);
}

function writeTimestamp(writer: BackWriter, seconds: number | bigint, nanos: number): void {
  writer.int64(nanos);
  writer.uint32(16);
  writer.int64(seconds);
  writer.uint32(8);
}

function writeSchemaChoice(writer: BackWriter, value: unknown, strings: boolean): void {
  if (typeof value !== "object" || value === null) return;
  if (!Array.isArray(value)) {
    writeSchema(writer, 1, value as Fields); // cast: decoded, or made by a program, as the descriptor says
    return;
  }
  for (let i = value.length - 1; i >= 0; i--) {
    if (strings) {
      writer.string(String(value[i]));
      writer.uint32(18);
    } else writeSchema(writer, 2, value[i] as Fields); // cast: decoded, or made by a program, as the descriptor says
  }
}

function writeSchema(writer: BackWriter, number: number, props: Fields): void {
  const write = messageWriter(scheme.type("apiextensions/v1.JSONSchemaProps")!);
  nested(writer, tagOf(number, 2), () => write(writer, props));
}

/**
 * Writes a protobuf message backwards, so that the length of a nested message is known when its prefix is written; no
 * sizing pass is needed. Callers write fields, list items and the parts of a field in reverse order: value, length, tag.
 */
export class BackWriter {
  #buffer = Buffer.allocUnsafe(firstBytes);
  /** Offset of the first written byte. */
  #start = firstBytes;

  /** Number of bytes written. The difference of two marks is the length of what was written in between. */
  get mark(): number {
    return this.#buffer.length - this.#start;
  }

  /** Varint of an unsigned number below 2^32. */
  uint32(value: number): void {
    const start = this.#room(5);
    const buffer = this.#buffer;
    if (value < 0x80) {
      buffer[start - 1] = value;
      this.#start = start - 1;
      return;
    }
    const size = value < 0x4000 ? 2 : value < 0x200000 ? 3 : value < 0x10000000 ? 4 : 5;
    let at = start - size;
    this.#start = at;
    let rest = value;
    for (; at < start - 1; at++) {
      buffer[at] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    buffer[at] = rest;
  }

  /** Varint of a signed number in 64-bit two's complement. */
  int64(value: number | bigint): void {
    if (typeof value === "number" && value >= 0 && value <= 0xffffffff) {
      this.uint32(value);
      return;
    }
    let rest = BigInt.asUintN(64, BigInt(value));
    const bytes: number[] = [];
    for (; rest >= 0x80n; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
    bytes.push(Number(rest));
    this.bytes(bytes);
  }

  bool(value: boolean): void {
    this.uint32(value ? 1 : 0);
  }

  double(value: number): void {
    this.#start = this.#buffer.writeDoubleLE(value, this.#room(8) - 8) - 8;
  }

  bytes(bytes: ArrayLike<number>): void {
    const start = this.#room(bytes.length) - bytes.length;
    this.#buffer.set(bytes, start);
    this.#start = start;
  }

  /** UTF-8 text with a length prefix. */
  string(text: string): void {
    if (text.length <= shortText && this.#short(text)) return;
    const size = Buffer.byteLength(text);
    const start = this.#room(size) - size;
    this.#buffer.write(text, start, size, "utf8");
    this.#start = start;
    this.uint32(size);
  }

  /** Writes the text if it is ASCII, else returns false. For short texts this loop is faster than a call into native code. */
  #short(text: string): boolean {
    const { length } = text;
    const start = this.#room(length + 1) - length;
    const buffer = this.#buffer;
    for (let i = 0; i < length; i++) {
      const code = text.charCodeAt(i);
      if (code > 0x7f) return false;
      buffer[start + i] = code;
    }
    buffer[start - 1] = length;
    this.#start = start - 1;
    return true;
  }

  /** Returns a copy of the written bytes and resets the writer. */
  finish(): Buffer {
    const bytes = Buffer.from(this.#buffer.subarray(this.#start));
    if (this.#buffer.length > mostKeptBytes) this.#buffer = Buffer.allocUnsafe(firstBytes);
    this.reset();
    return bytes;
  }

  /** Discards everything written, e.g. after an encoding error. */
  reset(): void {
    this.#start = this.#buffer.length;
  }

  /** Grows the buffer if fewer than `size` bytes are free. @returns `#start` */
  #room(size: number): number {
    if (this.#start < size) {
      const written = this.mark;
      const grown = Buffer.allocUnsafe(Math.max(this.#buffer.length * 2, written + size));
      this.#buffer.copy(grown, grown.length - written, this.#start);
      this.#start = grown.length - written;
      this.#buffer = grown;
    }
    return this.#start;
  }
}

const firstBytes = 16 * 1024;
/** A larger buffer is not kept for the next message. */
const mostKeptBytes = 16 * 1024 * 1024;
/** Maximum length for `#short`; below 128, so that the length prefix is a single byte. */
const shortText = 48;
