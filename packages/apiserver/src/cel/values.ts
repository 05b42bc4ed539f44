/**
 * What expressions work with. Booleans, texts, doubles and null are JavaScript's; an int is a bigint, bytes are a
 * Uint8Array. An error is a value too: `||`, `&&` and macros may get over it.
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

export class Failure {
  readonly message: string;
  constructor(message: string) {
    this.message = message;
  }
}

/** @param name of the function, where its first argument rules it out */
export const noOverload = (name?: string): Failure =>
  new Failure(name === undefined ? "no such overload" : `no such overload: ${name}`);

export class Uint {
  readonly value: bigint;
  constructor(value: bigint) {
    this.value = value;
  }
}

export class Duration {
  readonly nanos: bigint;
  constructor(nanos: bigint) {
    this.nanos = nanos;
  }
}

export class Timestamp {
  /** Since the epoch. */
  readonly seconds: bigint;
  /** 0 to 999999999. */
  readonly nanos: number;
  /** Of the clock it was told by, which shows in its text and its hours. */
  readonly offsetSeconds: number;
  constructor(seconds: bigint, nanos: number, offsetSeconds = 0) {
    this.seconds = seconds;
    this.nanos = nanos;
    this.offsetSeconds = offsetSeconds;
  }
}

/** A type as a value: what `type(x)` gives, and what `int` is. */
export class TypeName {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

export abstract class List {
  abstract readonly size: number;
  /** @param i within the size */
  abstract at(i: number): Value;
  abstract outOfRange(i: bigint): Failure;
  abstract equals(other: List, budget: Budget): boolean | Failure;
  abstract concat(other: List, budget: Budget): List;
}

export abstract class Mapping {
  abstract readonly size: number;
  /** Made as they are asked for: who looks at the first alone pays for no other. */
  abstract keys(): Iterable<Value>;
  protected abstract lookUp(key: Value): Value | undefined;

  /** undefined: has no such key; a Failure for a key of a wrong kind. */
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

/** Values of different types are not compared: that is an error, not false. */
export function equal(a: Value, b: Value, budget: Budget): boolean | Failure {
  if (a instanceof Failure) return a;
  if (b instanceof Failure) return b;
  budget.spend();
  if (a instanceof List) return b instanceof List ? budget.within(() => a.equals(b, budget)) : noOverload();
  if (a instanceof Mapping) return b instanceof Mapping ? budget.within(() => a.equals(b, budget)) : noOverload();
  if (typeOf(a) !== typeOf(b) || b instanceof List || b instanceof Mapping) return noOverload();
  if (typeof a === "string") budget.spendOnText(a.length);
  if (a instanceof Uint) return a.value === (b as Uint).value;
  if (a instanceof Duration) return a.nanos === (b as Duration).nanos;
  if (a instanceof Timestamp) return a.seconds === (b as Timestamp).seconds && a.nanos === (b as Timestamp).nanos;
  if (a instanceof TypeName) return a.name === (b as TypeName).name;
  if (a instanceof Uint8Array) {
    budget.spendOnText(a.length);
    return Buffer.compare(a, b as Uint8Array) === 0;
  }
  return a === b;
}

/** Lists have what equals it; what cannot be compared counts only when nothing does. */
export function contains(list: List, value: Value, budget: Budget): boolean | Failure {
  let failure: Failure | undefined;
  for (let i = 0; i < list.size; i++) {
    const isEqual = equal(list.at(i), value, budget);
    if (isEqual === true) return true;
    if (isEqual !== false) failure ??= isEqual;
  }
  return failure ?? false;
}
