/**
 * Runtime values. Booleans, strings, doubles and null are those of JavaScript; an int is a bigint, bytes are a Uint8Array.
 * Errors are values too (`Failure`), because `||`, `&&` and macros can absorb them.
 * Source: cel-go v0.9 common/types; the language's definition, "Values"
 */
import type { Budget } from "./budget.ts";

export type Value =
  | boolean
  | bigint
  | Uint
  | number
  | string
  | Uint8Array
  | null
  | Duration
  | Timestamp
  | TypeName
  | List
  | Mapping
  | Failure;

export const mostInt = 2n ** 63n - 1n;
export const mostUint = 2n ** 64n - 1n;

/** An error of the language, as a value. */
export class Failure {
  readonly message: string;
  constructor(message: string) {
    this.message = message;
  }
}

/** A function was called with types that it does not have; happens for dynamically typed values only, since the compiler reports the others. */
export class NoOverload extends Failure {}

/** @param name the function; set when its first argument has no such function */
export const noOverload = (name?: string): NoOverload =>
  new NoOverload(name === undefined ? "no such overload" : `no such overload: ${name}`);

/** A uint, apart from int, which is a bigint. `value` is at least 0 and below 2^64. */
export class Uint {
  readonly value: bigint;
  constructor(value: bigint) {
    this.value = value;
  }
}

/** A duration, which may be negative; `nanos` fits into 64 bits when it was made by `durationOf`. */
export class Duration {
  readonly nanos: bigint;
  constructor(nanos: bigint) {
    this.nanos = nanos;
  }
}

/** A point in time with the UTC offset that it was written with; `timestampOf` checks the range. */
export class Timestamp {
  /** Since the epoch. */
  readonly seconds: bigint;
  /** 0 to 999999999. */
  readonly nanos: number;
  /** UTC offset of the parsed text; used by formatting and by accessors such as getHours. */
  readonly offsetSeconds: number;
  constructor(seconds: bigint, nanos: number, offsetSeconds = 0) {
    this.seconds = seconds;
    this.nanos = nanos;
    this.offsetSeconds = offsetSeconds;
  }
}

/** A type as a value: the result of `type(x)` and of names such as `int`. */
export class TypeName {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

/** A list: created by an expression (`collections.ts`) or backed by JSON. */
export abstract class List {
  abstract readonly size: number;
  /** @param i 0 <= i < size */
  abstract at(i: number): Value;
  abstract outOfRange(i: bigint): Failure;
  abstract equals(other: List, budget: Budget): boolean | Failure;
  abstract concat(other: List, budget: Budget): List;
}

/** A map or object: created by an expression (`collections.ts`) or backed by JSON. */
export abstract class Mapping {
  abstract readonly size: number;
  /** Lazy: a fold that stops at the first key does not pay for the others. */
  abstract keys(): Iterable<Value>;
  protected abstract lookUp(key: Value): Value | undefined;

  /** @returns undefined when the key is absent; a Failure for a key of the wrong type */
  find(key: Value, budget: Budget): Value | undefined {
    if (typeof key === "string") budget.spendOnText(key.length);
    return this.lookUp(key);
  }

  abstract equals(other: Mapping, budget: Budget): boolean | Failure;
}

/** The name of a value's type. */
export function typeOf(value: Value): string {
  switch (typeof value) {
    case "boolean":
      return "bool";
    case "bigint":
      return "int";
    case "number":
      return "double";
    case "string":
      return "string";
  }
  if (value === null) return "null_type";
  return classes.find(([type]) => value instanceof type)?.[1] ?? "error";
}

const classes: readonly [type: new (...args: never[]) => object, name: string][] = [
  [Uint, "uint"],
  [Uint8Array, "bytes"],
  [Duration, "google.protobuf.Duration"],
  [Timestamp, "google.protobuf.Timestamp"],
  [TypeName, "type"],
];

/** Comparing values of different types is a Failure, not false. */
export function equal(a: Value, b: Value, budget: Budget): boolean | Failure {
  if (a instanceof Failure) return a;
  if (b instanceof Failure) return b;
  budget.spend();
  if (a instanceof List) return b instanceof List ? budget.within(() => a.equals(b, budget)) : noOverload();
  if (a instanceof Mapping) return b instanceof Mapping ? budget.within(() => a.equals(b, budget)) : noOverload();
  if (typeOf(a) !== typeOf(b) || b instanceof List || b instanceof Mapping) return noOverload();
  if (typeof a === "string") budget.spendOnText(a.length);
  if (a instanceof Uint) return a.value === (b as Uint).value; // cast: both values have one type, checked above
  if (a instanceof Duration) return a.nanos === (b as Duration).nanos; // cast: both values have one type, checked above
  // Cast: both values have one type, checked above.
  if (a instanceof Timestamp) return a.seconds === (b as Timestamp).seconds && a.nanos === (b as Timestamp).nanos;
  if (a instanceof TypeName) return a.name === (b as TypeName).name; // cast: both values have one type, checked above
  if (a instanceof Uint8Array) {
    budget.spendOnText(a.length);
    return Buffer.compare(a, b as Uint8Array) === 0; // cast: both values have one type, checked above
  }
  return a === b;
}

/** True when an item equals the value; a Failure when none does and an item could not be compared. */
export function contains(list: List, value: Value, budget: Budget): boolean | Failure {
  let failure: Failure | undefined;
  for (let i = 0; i < list.size; i++) {
    const isEqual = equal(list.at(i), value, budget);
    if (isEqual === true) return true;
    if (isEqual !== false) failure ??= isEqual;
  }
  return failure ?? false;
}
