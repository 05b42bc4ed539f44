import type protobuf from "protobufjs/minimal.js";
import type { FieldType, MessageField, TypeDescriptor } from "../schema/descriptor.ts";
import { scheme } from "../schema/scheme.ts";
import { textOfFields } from "./fields-v1.ts";
import { timeParts } from "./go-time.ts";
import { rawJson, sortedKeys } from "./json-encode.ts";

export type Writer = InstanceType<typeof protobuf.Writer>;
type Fields = Record<string, unknown>;
/** Writes a value, tag included. */
type Write = (writer: Writer, value: unknown, parent: Fields) => void;
/** Writes the inside of a message, without its length. */
type WriteMessage = (writer: Writer, object: Fields) => void;

const nothing: Fields = Object.freeze({});
const writers = new Map<TypeDescriptor, WriteMessage>();

/** Writes a struct as Kubernetes' generated code does: what is no pointer is always written, maps are sorted by key. */
export function writeMessage(writer: Writer, object: Fields, type: TypeDescriptor): void {
  messageWriter(type)(writer, object);
}

function messageWriter(type: TypeDescriptor): WriteMessage {
  let write = writers.get(type);
  if (write !== undefined) return write;
  let fields: { name: string | undefined; write: Write }[] | undefined;
  write = (writer, object) => {
    // Made on first use: types refer to themselves.
    fields ??= type.message.map((f) => ({ name: f.name, write: fieldWriter(f) }));
    for (const field of fields) field.write(writer, field.name === undefined ? undefined : object[field.name], object);
  };
  writers.set(type, write);
  return write;
}

function fieldWriter(field: MessageField): Write {
  if (field.name === undefined) {
    if (field.type.kind !== "struct") throw new Error("only structs are inlined");
    const inner = messageWriter(field.type.struct);
    const tag = tagOf(field.number, 2);
    return (writer, _, parent) => {
      writer.uint32(tag).fork();
      inner(writer, parent);
      writer.ldelim();
    };
  }
  const write = valueWriter(field.type, field.number);
  const type = field.type;
  if (type.kind === "list" && !type.wrapped) {
    const element = valueWriter(type.element, field.number);
    return (writer, value) => {
      if (!Array.isArray(value)) return;
      for (const item of value) element(writer, item, nothing);
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

function tagOf(number: number, wireType: 0 | 1 | 2): number {
  return (number << 3) | wireType;
}

/** A value that is always written; null and undefined are the type's zero. */
function valueWriter(type: FieldType, number: number): Write {
  const bytesTag = tagOf(number, 2);
  const varintTag = tagOf(number, 0);
  switch (type.kind) {
    case "string":
      return (writer, value) => {
        writer.uint32(bytesTag).string(typeof value === "string" ? value : "");
      };
    case "bool":
      return (writer, value) => {
        writer.uint32(varintTag).bool(value === true);
      };
    case "int32":
      return (writer, value) => {
        writer.uint32(varintTag).int32(typeof value === "number" ? value : 0);
      };
    case "int64":
      return (writer, value) => {
        writer.uint32(varintTag);
        writeInt64(writer, value);
      };
    case "float64": {
      const tag = tagOf(number, 1);
      return (writer, value) => {
        writer.uint32(tag).double(typeof value === "number" ? value : 0);
      };
    }
    case "bytes":
      return (writer, value) => {
        writer.uint32(bytesTag).bytes(Buffer.from(typeof value === "string" ? value : "", "base64"));
      };
    case "map": {
      const inner = valueWriter(type.value, 2);
      return (writer, value) => {
        if (typeof value !== "object" || value === null) return;
        const map = value as Fields;
        for (const key of sortedKeys(map)) {
          writer.uint32(bytesTag).fork().uint32(10).string(key);
          inner(writer, map[key], nothing);
          writer.ldelim();
        }
      };
    }
    default: {
      const inner = messageBody(type);
      return (writer, value) => {
        writer.uint32(bytesTag).fork();
        inner(writer, value);
        writer.ldelim();
      };
    }
  }
}

/** The inside of the message that a type is on the wire. */
function messageBody(type: FieldType): (writer: Writer, value: unknown) => void {
  switch (type.kind) {
    case "struct": {
      const write = messageWriter(type.struct);
      return (writer, value) => write(writer, (value ?? nothing) as Fields);
    }
    case "list": {
      // A named slice type is a message with the elements as field 1.
      const element = valueWriter(type.element, 1);
      return (writer, value) => {
        if (Array.isArray(value)) for (const item of value) element(writer, item, nothing);
      };
    }
    case "time":
      return (writer, value) => {
        if (typeof value !== "string") return; // Go's zero time is an empty message
        writer.uint32(8);
        writeInt64(writer, timeParts(value).seconds);
        writer.uint32(16).int32(0);
      };
    case "microTime":
      return (writer, value) => {
        if (typeof value !== "string") return;
        const { seconds, micros } = timeParts(value);
        writer.uint32(8);
        writeInt64(writer, seconds);
        writer.uint32(16).int32(micros * 1000);
      };
    case "quantity":
      return (writer, value) => {
        writer.uint32(10).string(value === undefined || value === null ? "0" : String(value));
      };
    case "intOrString":
      return (writer, value) => {
        const isText = typeof value === "string";
        writer.uint32(8).int32(isText ? 1 : 0);
        writer.uint32(16).int32(typeof value === "number" ? value : 0);
        writer.uint32(26).string(isText ? value : "");
      };
    case "raw":
    case "json":
      return (writer, value) => {
        if (value !== undefined && value !== null) writer.uint32(10).string(rawJson(value));
      };
    case "fieldsV1":
      return (writer, value) => {
        if (value !== undefined && value !== null) writer.uint32(10).string(textOfFields(value) ?? rawJson(value));
      };
    case "schemaOrArray":
      return (writer, value) => writeSchemaChoice(writer, value, false);
    case "schemaOrStrings":
      return (writer, value) => writeSchemaChoice(writer, value, true);
    case "schemaOrBool":
      return (writer, value) => {
        writer.uint32(8).bool(value !== false && value !== undefined && value !== null);
        if (typeof value === "object" && value !== null) writeNested(writer, 2, value as Fields);
      };
    default:
      throw new Error(`${type.kind} has no protobuf form`);
  }
}

function writeSchemaChoice(writer: Writer, value: unknown, strings: boolean): void {
  if (typeof value !== "object" || value === null) return;
  if (!Array.isArray(value)) {
    writeNested(writer, 1, value as Fields);
    return;
  }
  for (const item of value) {
    if (strings) writer.uint32(18).string(String(item));
    else writeNested(writer, 2, item as Fields);
  }
}

function writeNested(writer: Writer, number: number, props: Fields): void {
  writer.uint32(tagOf(number, 2)).fork();
  messageWriter(scheme.type("apiextensions/v1.JSONSchemaProps") as TypeDescriptor)(writer, props);
  writer.ldelim();
}

function writeInt64(writer: Writer, value: unknown): void {
  if (typeof value === "bigint") {
    const bits = BigInt.asUintN(64, value);
    writer.int64({ low: Number(bits & 0xffffffffn) | 0, high: Number(bits >> 32n) | 0, unsigned: false } as never);
  } else if (typeof value === "number" && value >= 0 && value <= 0x7fffffff) {
    writer.uint32(value);
  } else {
    writer.int64(typeof value === "number" ? value : 0);
  }
}
