/**
 * Arithmetic and comparison operators. Integer overflow is an error; values never wrap around.
 * Source: cel-go v0.9 interpreter/functions/standard.go, common/types/overflow.go
 */
import type { Budget } from "./budget.ts";
import { addDuration, durationOf, intOverflow, nanosOf } from "./times.ts";
import { Duration, Failure, List, mostInt, mostUint, noOverload, Timestamp, typeOf, Uint, type Value } from "./values.ts";

const divisionByZero = new Failure("division by zero");
const modulusByZero = new Failure("modulus by zero");
const uintOverflow = new Failure("unsigned integer overflow");

type Operation = (a: never, b: never, budget: Budget) => Value;

const checkedInt = (value: bigint): bigint | Failure => (value > mostInt || value < -mostInt - 1n ? intOverflow : value);
const checkedUint = (value: bigint): Uint | Failure => (value > mostUint || value < 0n ? uintOverflow : new Uint(value));

/** Implements an operation for int and uint. @param zero error when the second operand is 0 */
function integers(run: (a: bigint, b: bigint) => bigint, zero?: Failure): Readonly<Record<string, Operation>> {
  return {
    int: (a: bigint, b: bigint) => (zero !== undefined && b === 0n ? zero : checkedInt(run(a, b))),
    uint: (a: Uint, b: Uint) => (zero !== undefined && b.value === 0n ? zero : checkedUint(run(a.value, b.value))),
  };
}

const moduloOverflows = (a: bigint, b: bigint): boolean => a === -mostInt - 1n && b === -1n;

/** Implementations by operator and type of the first operand. Both operands have the same type, except in `mixed`. */
const binary: Readonly<Record<string, Readonly<Record<string, Operation>>>> = {
  "_+_": {
    ...integers((a, b) => a + b),
    double: (a: number, b: number) => a + b,
    string: concatTexts,
    bytes: concatBytes,
    list: (a: List, b: List, budget) => a.concat(b, budget),
    "google.protobuf.Duration": (a: Duration, b: Duration | Timestamp) =>
      b instanceof Timestamp ? addDuration(b, a) : durationOf(a.nanos + b.nanos),
    "google.protobuf.Timestamp": (a: Timestamp, b: Duration) => addDuration(a, b),
  },
  "_-_": {
    ...integers((a, b) => a - b),
    double: (a: number, b: number) => a - b,
    "google.protobuf.Duration": (a: Duration, b: Duration) => durationOf(a.nanos - b.nanos),
    "google.protobuf.Timestamp": (a: Timestamp, b: Duration | Timestamp) =>
      b instanceof Timestamp ? durationOf(nanosOf(a) - nanosOf(b)) : addDuration(a, new Duration(-b.nanos)),
  },
  "_*_": { ...integers((a, b) => a * b), double: (a: number, b: number) => a * b },
  "_/_": { ...integers((a, b) => a / b, divisionByZero), double: (a: number, b: number) => a / b },
  "_%_": {
    ...integers((a, b) => a % b, modulusByZero),
    int: (a: bigint, b: bigint) => (b === 0n ? modulusByZero : moduloOverflows(a, b) ? intOverflow : a % b),
  },
};

/** Operations on a timestamp and a duration. */
const mixed: ReadonlySet<string> = new Set([
  "_+_ google.protobuf.Duration google.protobuf.Timestamp",
  "_+_ google.protobuf.Timestamp google.protobuf.Duration",
  "_-_ google.protobuf.Timestamp google.protobuf.Duration",
]);

const kindOf = (value: Value): string => (value instanceof List ? "list" : typeOf(value));

export const binaryOperators: readonly string[] = Object.keys(binary);

/** @param name one of `binaryOperators` @returns a Failure on overflow, division by zero or unsuitable operands */
export function operate(name: string, a: Value, b: Value, budget: Budget): Value {
  const rows = binary[name]!;
  const [left, right] = [kindOf(a), kindOf(b)];
  const run = Object.hasOwn(rows, left) ? rows[left] : undefined;
  if (run === undefined) return noOverload(name);
  const isTimeAndTime = name === "_+_" && left === "google.protobuf.Timestamp" && right === left;
  if ((left !== right || isTimeAndTime) && !mixed.has(`${name} ${left} ${right}`)) return noOverload();
  return run(a as never, b as never, budget); // cast: the row was found by the type of `a`; that of `b` is equal or in `mixed`
}

function concatTexts(a: string, b: string, budget: Budget): string {
  budget.spendOnText(a.length, b.length);
  return a + b;
}

function concatBytes(a: Uint8Array, b: Uint8Array, budget: Budget): Uint8Array {
  budget.spendOnText(a.length, b.length);
  return Buffer.concat([a, b]);
}

const meanings: Readonly<Record<string, (order: number) => boolean>> = {
  "_<_": (order) => order < 0,
  "_<=_": (order) => order <= 0,
  "_>_": (order) => order > 0,
  "_>=_": (order) => order >= 0,
};

export const orders: readonly string[] = Object.keys(meanings);

/** @param name one of `orders` */
export function compare(name: string, a: Value, b: Value, budget: Budget): Value {
  const key = sortKey(a);
  if (key === undefined) return noOverload(name);
  if (typeOf(a) !== typeOf(b)) return noOverload();
  if (a instanceof Uint8Array) {
    budget.spendOnText(a.length);
    return meanings[name]!(Buffer.compare(a, b as Uint8Array)); // cast: both have one type, compared above
  }
  const other = sortKey(b)!;
  if (typeof key === "string") budget.spendOnText(key.length, (other as string).length); // cast: the operands have one type, so have their keys
  return meanings[name]!(orderOf(key, other));
}

/** Value to compare by; undefined for types without an order. */
function sortKey(value: Value): boolean | bigint | number | string | Uint8Array | undefined {
  if (value instanceof Uint) return value.value;
  if (value instanceof Duration) return value.nanos;
  if (value instanceof Timestamp) return nanosOf(value);
  if (value instanceof Uint8Array) return value;
  return value === null || typeof value === "object" ? undefined : value;
}

function orderOf(a: boolean | bigint | number | string | Uint8Array, b: typeof a): number {
  // Go compares strings by their UTF-8 bytes, that is by code points; JavaScript compares UTF-16 code units.
  // Cast: keys of operands of one type, which `compare` has checked.
  if (typeof a === "string") return Buffer.compare(Buffer.from(a), Buffer.from(b as string));
  return a < b ? -1 : a > b ? 1 : 0;
}

/** @returns a Failure when the result overflows or the type cannot be negated */
export function negate(value: Value): Value {
  if (typeof value === "bigint") return checkedInt(-value);
  if (typeof value === "number") return -value;
  return value instanceof Duration ? durationOf(-value.nanos) : noOverload(typeof value === "boolean" ? undefined : "-_");
}
