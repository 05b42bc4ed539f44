/**
 * Type conversion functions: `int(x)`, `string(x)` and so on.
 * Source: cel-go v0.9 common/types, ConvertToType of each type
 */
import { goFloat } from "@coxswain/apimachinery/process/metrics/go-float";
import type { Budget } from "./budget.ts";
import { formatSeconds, formatTimestamp, intOverflow, parseDuration, parseTimestamp, timestampOf } from "./times.ts";
import { Duration, Failure, mostInt, mostUint, type Timestamp, type TypeName, typeOf, Uint, type Value } from "./values.ts";

const uintOverflow = new Failure("unsigned integer overflow");
const twoTo63 = 2 ** 63;
const twoTo64 = 2 ** 64;

const intWithin = (value: bigint): bigint | undefined => (value > mostInt || value < -mostInt - 1n ? undefined : value);

/** Converters by target type, then by source type. They return undefined when the value cannot be converted. */
const rows: Readonly<Record<string, Readonly<Record<string, (value: never) => Value | undefined>>>> = {
  int: {
    uint: ({ value }: Uint) => (value > mostInt ? intOverflow : value),
    double: (value: number) => (value > -twoTo63 && value < twoTo63 ? BigInt(Math.trunc(value)) : intOverflow),
    string: (text: string) => (/^[+-]?[0-9]{1,40}$/.test(text) ? intWithin(signedInt(text)) : undefined),
    "google.protobuf.Timestamp": ({ seconds }: Timestamp) => seconds,
    "google.protobuf.Duration": ({ nanos }: Duration) => nanos,
  },
  uint: {
    int: (value: bigint) => (value < 0n ? uintOverflow : new Uint(value)),
    double: (value: number) => (value >= 0 && value < twoTo64 ? new Uint(BigInt(Math.trunc(value))) : uintOverflow),
    string: (text: string) => (/^[0-9]{1,40}$/.test(text) && BigInt(text) <= mostUint ? new Uint(BigInt(text)) : undefined),
  },
  double: {
    int: (value: bigint) => Number(value),
    uint: ({ value }: Uint) => Number(value),
    string: doubleOf,
  },
  bool: {
    string: (text: string) =>
      ["1", "t", "T", "true", "TRUE", "True"].includes(text) ||
      (["0", "f", "F", "false", "FALSE", "False"].includes(text) ? false : undefined),
  },
  string: {
    bool: String,
    int: String,
    uint: ({ value }: Uint) => String(value),
    double: (value: number) => (Object.is(value, -0) ? "-0" : goFloat(value)),
    bytes: utf8,
    null_type: () => "null",
    type: ({ name }: TypeName) => name,
    "google.protobuf.Timestamp": formatTimestamp,
    "google.protobuf.Duration": ({ nanos }: Duration) => formatSeconds(nanos),
  },
  bytes: { string: (text: string) => Buffer.from(text) },
  "google.protobuf.Timestamp": {
    string: parseTimestamp,
    int: (value: bigint) => timestampOf(value),
  },
  "google.protobuf.Duration": {
    string: (text: string) => {
      const nanos = parseDuration(text);
      return nanos === undefined ? undefined : new Duration(nanos);
    },
  },
};

/** Names of the conversion functions. */
export const conversions: readonly string[] = ["int", "uint", "double", "bool", "string", "bytes", "timestamp", "duration"];
const targets: Readonly<Record<string, string>> = {
  timestamp: "google.protobuf.Timestamp",
  duration: "google.protobuf.Duration",
};

/** @param name one of `conversions` @returns a Failure when the value cannot be converted */
export function convert(name: string, value: Value, budget: Budget): Value {
  if (typeof value === "string" || value instanceof Uint8Array) budget.spendOnText(value.length);
  const target = targets[name] ?? name;
  const type = typeOf(value);
  if (type === target) return value;
  const row = rows[target]!;
  // Cast: `row` is chosen by the type of the value.
  const converted = Object.hasOwn(row, type) ? row[type]?.(value as never) : undefined;
  return converted ?? new Failure(`type conversion error from '${type}' to '${target}'`);
}

function signedInt(text: string): bigint {
  return text.startsWith("-") ? -BigInt(text.slice(1)) : BigInt(text.replace("+", ""));
}

/** Source: strconv.ParseFloat */
function doubleOf(text: string): number | undefined {
  const special = /^([+-]?)(inf(?:inity)?|nan)$/i.exec(text);
  if (special !== null) {
    if (special[2]?.toLowerCase() === "nan") return special[1] === "" ? Number.NaN : undefined;
    return special[1] === "-" ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  }
  if (!/^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$/.test(text)) return undefined;
  const value = Number(text);
  return Number.isFinite(value) ? value : undefined;
}

function utf8(bytes: Uint8Array): string | Failure {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return new Failure("invalid UTF-8 in bytes, cannot convert to string");
  }
}
