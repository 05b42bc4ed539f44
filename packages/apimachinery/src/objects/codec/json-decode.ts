import { messageOf } from "../errors/message.ts";
import { isContainer } from "../meta/deep-equal.ts";
import { jsonWord } from "../meta/json-value.ts";
import { Quantity } from "../meta/quantity.ts";
import type { FieldDescriptor, FieldType, ScalarKind, TypeDescriptor } from "../schema/descriptor.ts";
import { scheme } from "../schema/scheme.ts";
import { canonicalMicroTime, canonicalTime } from "./go-time.ts";
import { isTooDeep, maxDepth, maxTextDepth, numberOf, setOwn } from "./json-parse.ts";

/**
 * Converts parsed JSON to the canonical form of a type:
 * - Fields that Go's encoder omits are absent (zero values with omitempty, null, empty lists and maps, empty structs).
 *   Fields that it always writes are present (`required` in the descriptor). So an object decodes to the same shape from
 *   JSON and from protobuf.
 * - Quantities, times and base64 are in canonical form. Unknown fields are dropped.
 * Takes ownership of the value and mutates it where possible. Numbers may be the symbols of `ParseOptions.literals`; they
 * remain in values without a schema, see `withoutLiterals`.
 * @throws DecodeFailure
 */
export function decodeValue(value: unknown, type: TypeDescriptor): Record<string, unknown> {
  return structDecoder(type)(value, 0) as Record<string, unknown>; // cast: the decoder of a struct returns an object or throws
}

/** Has Go's error text: `json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32`. */
export class DecodeFailure extends Error {
  readonly #word: string | undefined;
  readonly #goType: string;
  readonly #text: string;
  #struct: string | undefined;
  readonly #path: string[] = [];

  /** @param word Go's description of the JSON value, e.g. `string`, `number 1.5`; undefined when `text` is the whole message. */
  constructor(word: string | undefined, goType: string, text = "") {
    super();
    this.#word = word;
    this.#goType = goType;
    this.#text = text;
  }

  /** Prepends a field to the path; called by each enclosing struct while the exception propagates. */
  within(goStruct: string, field: string): void {
    this.#struct ??= goStruct;
    this.#path.unshift(field);
  }

  override get message(): string {
    if (this.#word === undefined) return this.#text;
    const where = this.#struct === undefined ? "Go value" : `Go struct field ${this.#struct}.${this.#path.join(".")}`;
    return `json: cannot unmarshal ${this.#word} into ${where} of type ${this.#goType}`;
  }
}

/** Duplicate keys that the parser found, by object. */
export type Duplicates = ReadonlyMap<object, ReadonlySet<string>>;

/** Upstream reports at most this many. */
const maxComplaints = 100;

/**
 * Field validation errors like `unknown field "spec.containers[0].foo"` and `duplicate field "spec.paused"`, in the order
 * of the text. Values below unknown fields and values without a schema are not checked.
 * @param value the parsed value, before `decodeValue`
 * @param isSorted visit keys in alphabetical order, as upstream does for YAML, which it converts to JSON with sorted keys
 * Source: sigs.k8s.io/json internal/golang/encoding/json/kubernetes_patch.go
 */
export function strictComplaints(
  value: unknown,
  type: TypeDescriptor,
  duplicates: Duplicates = new Map(),
  isSorted = false,
): string[] {
  const found = new Set<string>();
  collectComplaints(value, { kind: "struct", struct: type, goType: type.goName }, "", { duplicates, isSorted, found });
  return [...found];
}

interface Complaints {
  readonly duplicates: Duplicates;
  readonly isSorted: boolean;
  readonly found: Set<string>;
}

function collectComplaints(value: unknown, type: FieldType, path: string, complaints: Complaints): void {
  const { duplicates, isSorted, found } = complaints;
  if (typeof value !== "object" || value === null || found.size >= maxComplaints) return;
  if (type.kind === "list") {
    if (!Array.isArray(value)) return;
    for (const [i, element] of value.entries()) collectComplaints(element, type.element, `${path}[${i}]`, complaints);
    return;
  }
  if (Array.isArray(value) || (type.kind !== "map" && type.kind !== "struct")) return;
  const complain = (what: string, inner: string): void => {
    found.add(`${what} field ${JSON.stringify(inner)}`);
  };
  const twice = duplicates.get(value);
  const keys = isSorted ? Object.keys(value).sort() : Object.keys(value);
  for (const key of keys) {
    if (found.size >= maxComplaints) return;
    const element = (value as Record<string, unknown>)[key]; // cast: lists and scalars have returned above
    const inner = path === "" ? key : `${path}.${key}`;
    const elementType = type.kind === "map" ? type.value : type.struct.field(key)?.type;
    if (elementType === undefined) {
      complain("unknown", inner);
      continue;
    }
    if (twice?.has(key)) complain("duplicate", inner);
    collectComplaints(element, elementType, inner, complaints);
  }
}

/** Replaces the symbols of `ParseOptions.literals` by numbers, in place. */
export function withoutLiterals(value: unknown): unknown {
  if (typeof value === "symbol") return numberOf(value);
  const open: unknown[] = [value];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    if (!isContainer(at)) continue;
    for (const key of Object.keys(at)) {
      const inner = at[key];
      if (typeof inner === "symbol") setOwn(at, key, numberOf(inner));
      else if (typeof inner === "object" && inner !== null) open.push(inner);
    }
  }
  return value;
}

/**
 * Returns the canonical value; undefined when there is none (null for a type without zero value in JSON).
 * @param depth number of containers around the value
 */
type Decode = (value: unknown, depth: number) => unknown;

interface FieldCodec {
  readonly name: string;
  readonly decode: Decode;
  /** Fresh zero value of a required field. */
  readonly zero: () => unknown;
}

/** A pure cache: descriptors do not change. */
const structDecoders = new Map<TypeDescriptor, Decode>();

const structDecoder = (type: TypeDescriptor): Decode => structDecoders.getOrInsertComputed(type, makeStructDecoder);

function makeStructDecoder(type: TypeDescriptor): Decode {
  const goType = `${type.goPackage}.${type.goName}`;
  let fields: Map<string, FieldCodec> | undefined;
  let required: FieldCodec[] = [];
  // Created lazily, because types can be recursive.
  const prepare = (): Map<string, FieldCodec> => {
    const codecs = type.fields.map((f) => ({
      name: f.name,
      decode: fieldDecoder(f),
      zero: zeroOf(f.type),
      required: f.required,
    }));
    required = codecs.filter((c) => c.required);
    return new Map(codecs.map((c) => [c.name, c]));
  };
  return (value, depth) => {
    fields ??= prepare();
    if (value === null || value === undefined) return withRequired({}, required);
    if (typeof value !== "object" || Array.isArray(value)) throw new DecodeFailure(jsonWord(value), goType);
    if (depth >= maxDepth) throw tooDeep();
    const inside = depth + 1;
    const object = value as Record<string, unknown>; // cast: what is neither scalar nor list is an object
    let dropped = false;
    let current = "";
    try {
      for (const key in object) {
        const field = fields.get(key);
        if (field === undefined) {
          if (isTooDeep(object[key], maxTextDepth - inside)) throw tooDeep();
          dropped = true;
          continue;
        }
        current = key;
        const raw = object[key];
        const decoded = field.decode(raw, inside);
        if (decoded !== raw) object[key] = decoded;
        if (decoded === undefined) dropped = true;
      }
    } catch (err) {
      if (err instanceof DecodeFailure) err.within(type.goName, current);
      throw err;
    }
    return withRequired(dropped ? onlyFields(object, fields) : object, required);
  };
}

function withRequired(object: Record<string, unknown>, required: readonly FieldCodec[]): Record<string, unknown> {
  for (const field of required) {
    if (object[field.name] === undefined) object[field.name] = field.zero();
  }
  return object;
}

/** A copy with only the known fields that are set. */
function onlyFields(object: Record<string, unknown>, fields: ReadonlyMap<string, FieldCodec>): Record<string, unknown> {
  const kept: Record<string, unknown> = {};
  for (const name of fields.keys()) {
    const value = object[name];
    if (value !== undefined) kept[name] = value;
  }
  return kept;
}

/** Decodes a field's value; undefined when Go's encoder would omit the field. */
function fieldDecoder(field: FieldDescriptor): Decode {
  const decode = typeDecoder(field.type);
  if (field.pointer) return (value, depth) => (value === null || value === undefined ? undefined : decode(value, depth));
  switch (field.type.kind) {
    case "string":
      if (field.omitEmpty) return (value, depth) => (value === "" || value === null ? undefined : decode(value, depth));
      return decode;
    case "struct": {
      if (field.required) return decode;
      const type = field.type;
      return (value, depth) => {
        const decoded = decode(value, depth);
        return isZero(decoded, type) ? undefined : decoded;
      };
    }
    case "map":
      return mapDecoder(field.type.value, field.type.goType, field.omitEmpty);
    case "list":
    case "bytes": {
      if (!field.omitEmpty) return decode;
      return (value, depth) => {
        const decoded = decode(value, depth);
        return decoded === undefined || isEmpty(decoded) ? undefined : decoded;
      };
    }
    case "bool":
    case "int32":
    case "int64":
    case "float64": {
      if (!field.omitEmpty) return decode;
      return (value, depth) => {
        const decoded = decode(value, depth);
        return decoded === 0 || decoded === false ? undefined : decoded;
      };
    }
    case "quantity":
    case "intOrString": {
      if (field.required) return decode;
      // Go and protobuf do not distinguish zero from absent; the encoder writes the zero in both cases.
      const zero = field.type.kind === "quantity" ? "0" : 0;
      return (value, depth) => {
        const decoded = value === null || value === undefined ? zero : decode(value, depth);
        return decoded === zero ? undefined : decoded;
      };
    }
    default:
      return decode;
  }
}

function isEmpty(value: unknown): boolean {
  if (typeof value === "string") return value === "";
  if (Array.isArray(value)) return value.length === 0;
  for (const key in value as object) return key === undefined; // cast: what is neither text nor list is an object
  return true;
}

/** True when a decoded value is the zero value of its Go type. */
export function isZero(value: unknown, type: FieldType): boolean {
  switch (type.kind) {
    case "struct":
      // Cast: a decoded struct is an object.
      for (const key in value as object) {
        const field = type.struct.field(key);
        if (field === undefined) continue;
        // Cast: a decoded struct is an object.
        if (field.pointer || !isZero((value as Record<string, unknown>)[key], field.type)) return false;
      }
      return true;
    case "list":
    case "map":
      return value === undefined || isEmpty(value);
    case "quantity":
      return value === undefined || value === "0";
    case "intOrString":
      return value === undefined || value === 0;
    case "raw":
    case "json":
    case "any":
      return value === undefined || value === null;
    default:
      return value === undefined || value === "" || value === 0 || value === false || value === null;
  }
}

/** Factory of a type's zero values; these are undefined for times and raw values, which have none in JSON. */
export function zeroOf(type: FieldType): () => unknown {
  switch (type.kind) {
    case "struct":
      return () => structDecoder(type.struct)(null, 0);
    case "list":
      return () => [];
    case "map":
      return () => ({});
    case "string":
    case "bytes":
      return () => "";
    case "bool":
      return () => false;
    case "int32":
    case "int64":
    case "float64":
    case "intOrString":
      return () => 0;
    case "quantity":
      return () => "0";
    case "fieldsV1":
      return () => ({});
    default:
      return () => undefined;
  }
}

function typeDecoder(type: FieldType): Decode {
  switch (type.kind) {
    case "struct":
      return structDecoder(type.struct);
    case "list":
      return listDecoder(type.element, type.goType);
    case "map":
      return mapDecoder(type.value, type.goType);
    default:
      return scalarDecoder(type.kind, type.goType);
  }
}

function listDecoder(elementType: FieldType, goType: string): Decode {
  const decode = typeDecoder(elementType);
  const zero = zeroOf(elementType);
  return (value, depth) => {
    const inside = depth + 1;
    if (value === null || value === undefined) return [];
    if (!Array.isArray(value)) throw new DecodeFailure(jsonWord(value), goType);
    for (let i = 0; i < value.length; i++) {
      const raw = value[i];
      const decoded = raw === null ? zero() : decode(raw, inside);
      if (decoded !== raw) value[i] = decoded === undefined ? null : decoded;
    }
    return value;
  };
}

/** @param dropsEmpty undefined for an empty map. Testing a large map for keys afterwards would collect all of them. */
function mapDecoder(valueType: FieldType, goType: string, dropsEmpty = false): Decode {
  const decode = typeDecoder(valueType);
  const zero = zeroOf(valueType);
  return (value, depth) => {
    const inside = depth + 1;
    if (value === null || value === undefined) return dropsEmpty ? undefined : {};
    if (typeof value !== "object" || Array.isArray(value)) throw new DecodeFailure(jsonWord(value), goType);
    const map = value as Record<string, unknown>; // cast: what is neither scalar nor list is an object
    const keys = Object.keys(map);
    for (const key of keys) {
      const raw = map[key];
      const decoded = raw === null ? zero() : decode(raw, inside);
      if (decoded !== raw) setOwn(map, key, decoded === undefined ? null : decoded);
    }
    return dropsEmpty && keys.length === 0 ? undefined : map;
  };
}

/** Decodes a value other than a struct, list or map. @throws DecodeFailure */
export function decodeScalar(value: unknown, kind: ScalarKind, goType: string): unknown {
  return scalarDecoder(kind, goType)(value, 0);
}

function scalarDecoder(kind: ScalarKind, goType: string): Decode {
  switch (kind) {
    case "string":
      return (value) => {
        if (typeof value === "string") return value;
        if (value === null || value === undefined) return "";
        throw new DecodeFailure(jsonWord(value), goType);
      };
    case "bool":
      return (value) => {
        if (typeof value === "boolean") return value;
        if (value === null || value === undefined) return false;
        throw new DecodeFailure(jsonWord(value), goType);
      };
    case "int32":
      return (value) => {
        if (typeof value === "number" && (value | 0) === value) return value;
        if (value === null || value === undefined) return 0;
        throw new DecodeFailure(numberWordOf(value), goType);
      };
    case "int64":
      return (value) => {
        if (typeof value === "bigint" || (typeof value === "number" && Number.isSafeInteger(value))) return value;
        if (value === null || value === undefined) return 0;
        throw new DecodeFailure(numberWordOf(value), goType);
      };
    case "float64":
      return (value) => {
        if (typeof value === "number") return value;
        if (typeof value === "bigint") return Number(value);
        if (typeof value === "symbol" && Number.isFinite(numberOf(value))) return numberOf(value);
        if (value === null || value === undefined) return 0;
        throw new DecodeFailure(numberWordOf(value), goType);
      };
    case "bytes":
      return (value) => decodeBase64(value, goType);
    case "time":
      return (value) => decodeTime(value, canonicalTime);
    case "microTime":
      return (value) => decodeTime(value, canonicalMicroTime);
    case "quantity":
      return decodeQuantity;
    case "intOrString":
      return (value) => {
        if (typeof value === "string" || (typeof value === "number" && (value | 0) === value)) return value;
        if (value === null || value === undefined) return 0;
        throw new DecodeFailure(numberWordOf(value), "int32");
      };
    case "raw":
    case "json":
    case "any":
    case "fieldsV1":
      return (value, depth) => {
        if (isTooDeep(value, maxDepth - depth)) throw tooDeep();
        return value === null ? undefined : value;
      };
    case "schemaOrArray":
      return (value, depth) => {
        if (Array.isArray(value))
          return listDecoder({ kind: "struct", struct: schemaProps(), goType: "v1.JSONSchemaProps" }, goType)(value, depth);
        return typeof value === "object" && value !== null ? structDecoder(schemaProps())(value, depth) : undefined;
      };
    case "schemaOrBool":
      return (value, depth) => {
        if (typeof value === "boolean") return value;
        if (typeof value === "object" && value !== null && !Array.isArray(value))
          return structDecoder(schemaProps())(value, depth);
        if (value === null || value === undefined) return undefined;
        throw new DecodeFailure(undefined, "", "boolean or JSON schema expected");
      };
    case "schemaOrStrings":
      return (value, depth) => {
        if (Array.isArray(value)) return listDecoder({ kind: "string", goType: "string" }, "[]string")(value, depth);
        return typeof value === "object" && value !== null ? structDecoder(schemaProps())(value, depth) : undefined;
      };
  }
}

function tooDeep(): DecodeFailure {
  return new DecodeFailure(undefined, "", "exceeded max depth");
}

function schemaProps(): TypeDescriptor {
  return scheme.type("apiextensions/v1.JSONSchemaProps")!;
}

function decodeTime(value: unknown, canonical: (text: string) => string | undefined): string | undefined {
  if (value === null || value === undefined) return undefined;
  if (typeof value !== "string") throw new DecodeFailure(jsonWord(value), "string");
  try {
    return canonical(value);
  } catch (err) {
    throw new DecodeFailure(undefined, "", messageOf(err));
  }
}

/** A pure, bounded cache: objects use few different quantities, and parsing them dominates the decoding of a Pod. */
const canonicalQuantities = new Map<string, string>();

/** Canonical text of a quantity; "0" for null and undefined. @throws DecodeFailure */
export function decodeQuantity(value: unknown): string {
  if (value === null || value === undefined) return "0";
  let text = typeof value === "object" || typeof value === "boolean" ? "{}" : String(value);
  if (typeof value === "symbol") text = value.description ?? "";
  const known = canonicalQuantities.get(text);
  if (known !== undefined) return known;
  let canonical: string;
  try {
    canonical = Quantity.parse(text.trim()).toString();
  } catch (err) {
    throw new DecodeFailure(undefined, "", messageOf(err));
  }
  if (canonicalQuantities.size >= 4096) canonicalQuantities.clear();
  if (text.length <= 32) canonicalQuantities.set(text, canonical);
  return canonical;
}

function decodeBase64(value: unknown, goType: string): string {
  if (value === null || value === undefined || value === "") return "";
  if (Array.isArray(value)) return Buffer.from(value.map(byteOf)).toString("base64");
  if (typeof value !== "string") throw new DecodeFailure(jsonWord(value), goType);
  const canonical = Buffer.from(value, "base64").toString("base64");
  if (canonical === value) return value;
  const corruptAt = corruptBase64(value);
  if (corruptAt >= 0) throw new DecodeFailure(undefined, "", `illegal base64 data at input byte ${corruptAt}`);
  return canonical;
}

/** Go also decodes `[]byte` from a list of numbers, where null is 0. */
function byteOf(value: unknown): number {
  if (value === null) return 0;
  if (typeof value === "number" && (value & 0xff) === value) return value;
  throw new DecodeFailure(numberWordOf(value), "uint8");
}

/** Position of the first byte that Go's decoder rejects, -1 if there is none. Line breaks are ignored, padding is required. */
function corruptBase64(text: string): number {
  let digits = 0;
  for (let i = 0; i < text.length; i++) {
    const char = text[i]!;
    if (char === "\n" || char === "\r") continue;
    if (char === "=") {
      if (digits % 4 < 2) return i;
      let next = afterBreaks(text, i + 1);
      if (digits % 4 === 2) {
        if (next === text.length) return next;
        if (text[next] !== "=") return next - 1;
        next = afterBreaks(text, next + 1);
      }
      return next === text.length ? -1 : next;
    }
    if (!/[A-Za-z0-9+/]/.test(char)) return i;
    digits++;
  }
  return digits % 4 === 0 ? -1 : text.length - (digits % 4);
}

/** Position of the first character that is no line break, not before `from`. */
function afterBreaks(text: string, from: number): number {
  let at = from;
  while (text[at] === "\n" || text[at] === "\r") at++;
  return at;
}

function numberWordOf(value: unknown): string {
  if (typeof value === "symbol") return `number ${value.description}`;
  return typeof value === "number" || typeof value === "bigint" ? `number ${value}` : jsonWord(value);
}
