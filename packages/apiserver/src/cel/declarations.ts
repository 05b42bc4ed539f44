/**
 * Declarations of all functions with their signatures. `A` and `B` are type parameters; the type before a dot is the receiver
 * of a method.
 * Source: cel-go v0.9 checker/standard.go, ext/strings.go
 */
import {
  bool,
  bytes,
  double,
  duration,
  dyn,
  int,
  listOf,
  mapOf,
  nullType,
  parameter,
  string,
  type Type,
  timestamp,
  typeType,
  uint,
} from "./types.ts";

export interface Overload {
  readonly isMethod: boolean;
  readonly parameters: readonly string[];
  /** The receiver of a method comes first. */
  readonly args: readonly Type[];
  readonly result: Type;
}

const each = (types: string, signature: string): string[] => types.split(" ").map((type) => signature.replaceAll("T", type));
const comparison = each("bool int uint double string bytes timestamp duration", "(T, T) -> bool");
const arithmetic = each("int uint double", "(T, T) -> T");
const ofTimestamp = ["timestamp.() -> int", "timestamp.(string) -> int"];
const ofTime = [...ofTimestamp, "duration.() -> int"];

const signatures: Readonly<Record<string, readonly string[]>> = {
  "_?_:_": ["(bool, A, A) -> A"],
  "_&&_": ["(bool, bool) -> bool"],
  "_||_": ["(bool, bool) -> bool"],
  "!_": ["(bool) -> bool"],
  "@not_strictly_false": ["(bool) -> bool"],
  "_==_": ["(A, A) -> bool"],
  "_!=_": ["(A, A) -> bool"],
  "_<_": comparison,
  "_<=_": comparison,
  "_>_": comparison,
  "_>=_": comparison,
  "_-_": [
    ...arithmetic,
    "(timestamp, timestamp) -> duration",
    "(timestamp, duration) -> timestamp",
    "(duration, duration) -> duration",
  ],
  "_*_": arithmetic,
  "_/_": arithmetic,
  "_%_": each("int uint", "(T, T) -> T"),
  "_+_": [
    ...arithmetic,
    ...each("string bytes list(A)", "(T, T) -> T"),
    "(timestamp, duration) -> timestamp",
    "(duration, timestamp) -> timestamp",
    "(duration, duration) -> duration",
  ],
  "-_": each("int double", "(T) -> T"),
  "_[_]": ["(list(A), int) -> A", "(map(A, B), A) -> B"],
  "@in": ["(A, list(A)) -> bool", "(A, map(A, B)) -> bool"],
  size: [...each("string bytes list(A) map(A,B)", "T.() -> int"), ...each("string bytes list(A) map(A,B)", "(T) -> int")],
  type: ["(A) -> type(A)"],
  int: each("int uint double string timestamp duration", "(T) -> int"),
  uint: each("uint int double string", "(T) -> uint"),
  double: each("double int uint string", "(T) -> double"),
  bool: each("bool string", "(T) -> bool"),
  string: each("string bool int uint double bytes timestamp duration", "(T) -> string"),
  bytes: each("bytes string", "(T) -> bytes"),
  timestamp: each("timestamp string int", "(T) -> timestamp"),
  duration: each("duration string int", "(T) -> duration"),
  dyn: ["(A) -> dyn"],
  contains: ["string.(string) -> bool"],
  endsWith: ["string.(string) -> bool"],
  matches: ["string.(string) -> bool"],
  startsWith: ["string.(string) -> bool"],
  getFullYear: ofTimestamp,
  getMonth: ofTimestamp,
  getDayOfYear: ofTimestamp,
  getDayOfMonth: ofTimestamp,
  getDate: ofTimestamp,
  getDayOfWeek: ofTimestamp,
  getHours: ofTime,
  getMinutes: ofTime,
  getSeconds: ofTime,
  getMilliseconds: ofTime,
  charAt: ["string.(int) -> string"],
  indexOf: ["string.(string) -> int", "string.(string, int) -> int"],
  lastIndexOf: ["string.(string) -> int", "string.(string, int) -> int"],
  lowerAscii: ["string.() -> string"],
  replace: ["string.(string, string) -> string", "string.(string, string, int) -> string"],
  split: ["string.(string) -> list(string)", "string.(string, int) -> list(string)"],
  substring: ["string.(int) -> string", "string.(int, int) -> string"],
  trim: ["string.() -> string"],
  upperAscii: ["string.() -> string"],
  join: ["list(string).() -> string", "list(string).(string) -> string"],
};

const simple: Readonly<Record<string, Type>> = {
  bool,
  int,
  uint,
  double,
  string,
  bytes,
  duration,
  timestamp,
  dyn,
  A: parameter("A"),
  B: parameter("B"),
};

/** Overloads by function name, in the order in which they are tried. */
export const functions: ReadonlyMap<string, readonly Overload[]> = new Map(
  Object.entries(signatures).map(([name, overloads]) => [name, overloads.map(parseSignature)]),
);

function parseSignature(signature: string): Overload {
  const [, target = "", args = "", result = ""] = /^(?:(.+)\.)?\((.*)\) -> (.+)$/.exec(signature) ?? [];
  // Commas inside parentheses do not separate arguments.
  const types = [...(target === "" ? [] : [target]), ...(args.match(/[a-zA-Z]+(?:\([^()]*\))?/g) ?? [])];
  return {
    isMethod: target !== "",
    parameters: ["A", "B"].filter((name) => new RegExp(`\\b${name}\\b`).test(signature)),
    args: types.map(parseType),
    result: parseType(result),
  };
}

function parseType(text: string): Type {
  const [, name = "", args = ""] = /^([a-zA-Z]+)(?:\((.*)\))?$/.exec(text) ?? [];
  const parts = args === "" ? [] : args.split(",").map((part) => parseType(part.trim()));
  if (name === "list") return listOf(parts[0]!);
  if (name === "map") return mapOf(parts[0]!, parts[1]!);
  if (name === "type") return typeType(parts[0]);
  return simple[name]!;
}

/** Type names that can be used as values: `type(x) == int`. */
export const typeNames: ReadonlyMap<string, Type> = new Map([
  ...[int, uint, bool, double, bytes, string].map((type) => ["name" in type ? type.name : "", typeType(type)] as const),
  ["list", typeType(listOf(parameter("A")))],
  ["map", typeType(mapOf(parameter("A"), parameter("B")))],
  ["null_type", typeType(nullType)],
  ["type", typeType(typeType())],
  ["google.protobuf.Duration", typeType(duration)],
  ["google.protobuf.Timestamp", typeType(timestamp)],
]);
