import { type Steps, sortedInSteps } from "../../process/event-loop/steps.ts";
import { valuesPerStep } from "../meta/deep-equal.ts";
import { rawJson as withoutQuotes } from "../meta/json-value.ts";
import type { FieldDescriptor, FieldType, TypeDescriptor } from "../schema/descriptor.ts";
import { scheme } from "../schema/scheme.ts";
import { textOfFields } from "./fields-v1.ts";

/**
 * JSON text of a value, byte for byte what Go's encoding/json writes for the struct: its field order and omitempty rules
 * (structs, times and quantities are always written), sorted map keys, `<`, `>` and `&` escaped.
 */
export function encodeValue(value: unknown, type: TypeDescriptor): string {
  return structEncoder(type).encode(value as Record<string, unknown>); // cast: decoded, or made by a program, as the descriptor says
}

/** Any JSON value with sorted keys, as Go writes `map[string]interface{}`. */
export function encodeAny(value: unknown): string {
  switch (typeof value) {
    case "string":
      return quote(value);
    case "number":
      return Number.isFinite(value) ? String(value) : "null";
    case "bigint":
      return value.toString();
    case "boolean":
      return value ? "true" : "false";
    case "object": {
      if (value === null) return "null";
      if (Array.isArray(value)) {
        if (value.length === 0) return "[]";
        let text = "[" + encodeAny(value[0]);
        for (let i = 1; i < value.length; i++) text += "," + encodeAny(value[i]);
        return text + "]";
      }
      return encodeMap(value as Record<string, unknown>, encodeAny); // cast: what is neither scalar nor list is an object
    }
    default:
      return "null";
  }
}

/** JSON text of a raw value: key order is preserved, escapes are those of Go. */
export function encodeRaw(value: unknown): string {
  return value === undefined || value === null ? "null" : escapeHtml(rawJson(value));
}

function encodeFields(fields: unknown): string {
  const text = textOfFields(fields);
  return text === undefined ? encodeRaw(fields) : escapeHtml(text);
}

/** As `encodeRaw` without HTML escapes, as protobuf stores it. Integers beyond 2^53 are written in full. */
export function rawJson(value: unknown): string {
  try {
    return JSON.stringify(value);
  } catch (err) {
    if (err instanceof RangeError) throw err;
    return JSON.stringify(value, (_, v: unknown) => (typeof v === "bigint" ? withoutQuotes(v.toString()) : v));
  }
}

const needsEscape = /["\\<>&\u0000-\u001f\u2028\u2029\ud800-\udfff]/;

/** A JSON string literal with Go's escapes. */
export function quote(value: unknown): string {
  const text = typeof value === "string" ? value : String(value);
  if (!needsEscape.test(text)) return `"${text}"`;
  if (text.length <= mostByCharacter && !surrogate.test(text)) return `"${text.replace(escaped, escapeOf)}"`;
  return escapeHtml(JSON.stringify(text.toWellFormed())).replaceAll(/\\[bf]|\\\\/g, (sequence) =>
    sequence === "\\b" ? "\\u0008" : sequence === "\\f" ? "\\u000c" : sequence,
  );
}

/** Longer texts are escaped faster by `JSON.stringify`, whose costs for each text are higher. */
const mostByCharacter = 64;
const surrogate = /[\ud800-\udfff]/;
const escaped = /["\\<>&\u0000-\u001f\u2028\u2029]/g;
/**
 * A Map, because of a bug in V8 14.6: where an object has the keys `"` and `\`, `JSON.parse` reads the text `{"\"":1,"\n":2}` with the second key `\`.
 * It takes the raw text of an escaped key for the key that followed in an earlier object.
 */
const shortEscapes: ReadonlyMap<string, string> = new Map([
  ['"', '\\"'],
  ["\\", "\\\\"],
  ["\n", "\\n"],
  ["\r", "\\r"],
  ["\t", "\\t"],
]);

function escapeOf(char: string): string {
  return shortEscapes.get(char) ?? unicodeEscape(char);
}

const unicodeEscape = (char: string): string => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;

function escapeHtml(json: string): string {
  return json.replaceAll(/[<>&\u2028\u2029]/g, unicodeEscape);
}

function encodeMap(map: Record<string, unknown>, encode: (value: unknown) => string): string {
  const keys = sortedKeys(map);
  let text = "";
  for (const key of keys) {
    const value = map[key];
    if (value === undefined) continue;
    text += (text === "" ? "{" : ",") + quote(key) + ":" + encode(value);
  }
  return text === "" ? "{}" : text + "}";
}

/** Keys in Go's order, by UTF-8 bytes. JavaScript's order by UTF-16 code units differs only for surrogates. */
export function sortedKeys(map: object): string[] {
  const keys = Object.keys(map);
  if (keys.length < 2) return keys;
  let sorted = true;
  let surrogates = false;
  for (let i = 0; i < keys.length; i++) {
    const key = keys[i]!;
    if (i > 0 && keys[i - 1]! > key) sorted = false;
    if (!surrogates && hasSurrogate(key)) surrogates = true;
  }
  if (surrogates) return keys.sort(compareUtf8);
  return sorted ? keys : keys.sort();
}

/** As `sortedKeys`, in steps for many keys. */
export function* sortedKeysInSteps(map: object): Steps<string[]> {
  const keys = Object.keys(map);
  if (keys.length <= valuesPerStep) return sortedKeys(map);
  yield;
  return yield* sortedInSteps(keys, compareUtf8);
}

/** The order of the texts' UTF-8 bytes, in which lone surrogates are U+FFFD. */
function compareUtf8(a: string, b: string): number {
  const [left, right] = [a.toWellFormed(), b.toWellFormed()];
  const length = Math.min(left.length, right.length);
  for (let i = 0; i < length; i++) {
    const [one, other] = [left.charCodeAt(i), right.charCodeAt(i)];
    if (one !== other) return rankOf(one) - rankOf(other);
  }
  return left.length - right.length;
}

/** Orders UTF-16 units by code point: surrogates stand for characters above all single units. */
const rankOf = (unit: number): number => (unit >= 0xe000 ? unit - 0x800 : unit >= 0xd800 ? unit + 0x2000 : unit);

function hasSurrogate(text: string): boolean {
  for (let i = 0; i < text.length; i++) if ((text.charCodeAt(i) & 0xf800) === 0xd800) return true;
  return false;
}

type Encode = (value: unknown) => string;
type Fields = Record<string, unknown>;

class StructEncoder {
  readonly #type: TypeDescriptor;
  #compiled: ((object: Fields) => string) | undefined;

  constructor(type: TypeDescriptor) {
    this.#type = type;
  }

  encode(object: Fields | undefined | null): string {
    this.#compiled ??= compile(this.#type);
    return this.#compiled(object ?? nothing);
  }
}

const nothing: Fields = Object.freeze({});
/** A pure cache: descriptors do not change. */
const encoders = new Map<TypeDescriptor, StructEncoder>();

const structEncoder = (type: TypeDescriptor): StructEncoder => encoders.getOrInsertComputed(type, () => new StructEncoder(type));

/**
 * Generates one function for each struct from the type descriptors, never from input. Literal property names are several
 * times faster than dynamic lookups.
 */
function compile(type: TypeDescriptor): (object: Fields) => string {
  const parts: Encode[] = [];
  const lines: string[] = ['let s = "{", v;'];
  let certain = false; // a field is always written before, so a comma is needed
  for (const field of type.fields) {
    const { condition, encoder } = fieldEncoder(field, type);
    const part = parts.push(encoder) - 1;
    const name = JSON.stringify(`${JSON.stringify(field.name)}:`);
    lines.push(`v = o[${JSON.stringify(field.name)}];`);
    const separator = certain ? '","' : 's.length > 1 ? "," : ""';
    const write = `s += (${separator}) + ${name} + p[${part}](v);`;
    lines.push(condition === undefined ? write : `if (${condition}) { ${write} }`);
    if (condition === undefined) certain = true;
  }
  lines.push('return s + "}";');
  const made = new Function("p", "isEmptyMap", `return function encode_${type.goName}(o) { ${lines.join("\n")} };`);
  return made(parts, isEmptyMap) as (object: Fields) => string; // cast: the source above is that of such a function
}

/** For each field of a struct, in order: its text without a comma, empty when it is not written. Generated like `compile`. */
export function fieldTexts(type: TypeDescriptor): ((object: Fields) => string)[] {
  return type.fields.map((field) => {
    const { condition, encoder } = fieldEncoder(field, type);
    const name = JSON.stringify(`${JSON.stringify(field.name)}:`);
    const body = `const v = o[${JSON.stringify(field.name)}]; return ${condition ?? "true"} ? ${name} + encode(v) : "";`;
    // Cast: the source above is that of such a function.
    return new Function("encode", "isEmptyMap", `return (o) => { ${body} };`)(encoder, isEmptyMap) as (object: Fields) => string;
  });
}

/** `condition` is an expression on `v` that decides whether the field is written; undefined means always. */
function fieldEncoder(field: FieldDescriptor, owner: TypeDescriptor): { condition: string | undefined; encoder: Encode } {
  const encode = typeEncoder(field.type);
  const set = "v !== undefined && v !== null";
  if (field.pointer) {
    if (field.omitEmpty) return { condition: set, encoder: encode };
    return { condition: undefined, encoder: (v) => (v === undefined || v === null ? "null" : encode(v)) };
  }
  switch (field.type.kind) {
    case "string":
    case "bytes":
      return { condition: field.omitEmpty ? `${set} && v !== ""` : undefined, encoder: encode };
    case "bool":
      return { condition: field.omitEmpty ? "v === true" : undefined, encoder: encode };
    case "int32":
    case "int64":
    case "float64":
      return { condition: field.omitEmpty ? `${set} && v !== 0` : undefined, encoder: encode };
    case "list": {
      if (field.omitEmpty) return { condition: `${set} && v.length !== 0`, encoder: encode };
      const empty = owner.writesEmptyLists ? "[]" : "null";
      return { condition: undefined, encoder: (v) => (isEmptyList(v) ? empty : encode(v)) };
    }
    case "map": {
      const empty = owner.writesEmptyLists ? "{}" : "null";
      if (field.omitEmpty) return { condition: `${set} && !isEmptyMap(v)`, encoder: encode };
      return { condition: undefined, encoder: (v) => (isEmptyMap(v) ? empty : encode(v)) };
    }
    default:
      return { condition: undefined, encoder: encode };
  }
}

function isEmptyList(value: unknown): boolean {
  return !Array.isArray(value) || value.length === 0;
}

function isEmptyMap(value: unknown): boolean {
  for (const key in value as object) return key === undefined; // cast: what is neither text nor list is an object
  return true;
}

/** Compiles an encoder of values of one type; the rules of a field (omitted, null, empty) are those of its struct. */
export function typeEncoder(type: FieldType): Encode {
  switch (type.kind) {
    case "struct": {
      const encoder = structEncoder(type.struct);
      return (value) => encoder.encode(value as Fields); // cast: decoded, or made by a program, as the descriptor says
    }
    case "list": {
      const element = typeEncoder(type.element);
      return (value) => {
        const list = value as unknown[]; // cast: decoded, or made by a program, as the descriptor says
        if (list.length === 0) return "[]";
        let text = "[" + element(list[0]);
        for (let i = 1; i < list.length; i++) text += "," + element(list[i]);
        return text + "]";
      };
    }
    case "map": {
      const element = typeEncoder(type.value);
      return (value) => encodeMap(value as Fields, element); // cast: decoded, or made by a program, as the descriptor says
    }
    case "string":
    case "bytes":
      return (value) => (value === undefined || value === null ? '""' : quote(value));
    case "time":
    case "microTime":
      return (value) => (value === undefined || value === null ? "null" : quote(value));
    case "quantity":
      return (value) => (value === undefined || value === null ? '"0"' : quote(value));
    case "bool":
      return (value) => (value === true ? "true" : "false");
    case "int32":
    case "int64":
    case "float64":
      return (value) => (value === undefined || value === null ? "0" : `${value}`);
    case "intOrString":
      return (value) => (value === undefined || value === null ? "0" : typeof value === "string" ? quote(value) : `${value}`);
    case "raw":
    case "json":
      return encodeRaw;
    case "fieldsV1":
      return encodeFields;
    case "any":
      return encodeAny;
    case "schemaOrArray":
    case "schemaOrBool":
    case "schemaOrStrings":
      return encodeSchemaChoice;
  }
}

function encodeSchemaChoice(value: unknown): string {
  if (typeof value === "boolean") return value ? "true" : "false";
  if (typeof value !== "object" || value === null) return "null";
  const props = structEncoder(scheme.type("apiextensions/v1.JSONSchemaProps")!);
  if (!Array.isArray(value)) return props.encode(value as Fields); // cast: decoded, or made by a program, as the descriptor says
  // Cast: decoded, or made by a program, as the descriptor says.
  return `[${value.map((v) => (typeof v === "string" ? quote(v) : props.encode(v as Fields))).join(",")}]`;
}

/** Copies a Buffer that is a slice of a larger one. Small Buffers come from a pool; keeping one retains the whole pool. */
export function ownMemory(bytes: Buffer): Buffer {
  if (bytes.buffer.byteLength === bytes.byteLength) return bytes;
  const copy = Buffer.allocUnsafeSlow(bytes.byteLength);
  bytes.copy(copy);
  return copy;
}
