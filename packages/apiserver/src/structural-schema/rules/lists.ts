/**
 * Lists of custom resources in validation rules. Lists of `x-kubernetes-list-type` set and map compare regardless of order,
 * and concatenation merges items with the same key.
 * Source: apiextensions-apiserver pkg/apiserver/schema/cel/values.go
 */
import type { Budget } from "../../cel/budget.ts";
import { convert } from "../../cel/conversions.ts";
import { equal, Failure, List, Mapping, typeOf, type Value } from "../../cel/values.ts";

/** An atomic list. Creates each item on first access. */
export class SchemaList extends List {
  readonly size: number;
  readonly #make: (i: number) => Value;
  readonly #made: Value[] = [];

  constructor(size: number, make: (i: number) => Value) {
    super();
    this.size = size;
    this.#make = make;
  }

  at(i: number): Value {
    this.#made[i] ??= this.#make(i);
    return this.#made[i];
  }

  outOfRange(i: bigint): Failure {
    return new Failure(`index out of bounds: ${i}`);
  }

  equals(other: List, budget: Budget): boolean | Failure {
    if (this.size !== other.size) return false;
    for (let i = 0; i < this.size; i++) {
      const isEqual = equal(this.at(i), other.at(i), budget);
      if (isEqual !== true) return isEqual;
    }
    return true;
  }

  concat(other: List, budget: Budget): List {
    budget.spend(this.size + other.size);
    return this.remade([...itemsOf(this), ...itemsOf(other)]);
  }

  protected remade(values: readonly Value[]): List {
    return new SchemaList(values.length, (i) => values[i]!);
  }
}

/** A list whose items are identified by a key: the whole item (set) or some of its fields (map). */
abstract class KeyedList extends SchemaList {
  protected abstract keyOf(item: Value, budget: Budget): string;

  override equals(other: List, budget: Budget): boolean | Failure {
    if (this.size !== other.size) return false;
    const own = this.#byKey(budget);
    for (const item of itemsOf(other)) {
      const found = own.get(this.keyOf(item, budget));
      if (found === undefined) return false;
      const isEqual = equal(found, item, budget);
      if (isEqual !== true) return isEqual;
    }
    return true;
  }

  /** Items of `other` replace own items with the same key in place; the rest is appended. */
  override concat(other: List, budget: Budget): List {
    budget.spend(this.size + other.size);
    const items = this.#byKey(budget);
    for (const item of itemsOf(other)) items.set(this.keyOf(item, budget), item);
    return this.remade([...items.values()]);
  }

  #byKey(budget: Budget): Map<string, Value> {
    return new Map(itemsOf(this).map((item) => [this.keyOf(item, budget), item]));
  }
}

/** List of type set: items are identified by their whole value. */
export class SetList extends KeyedList {
  protected override keyOf(item: Value, budget: Budget): string {
    return identity(item, budget);
  }

  protected override remade(values: readonly Value[]): List {
    return new SetList(values.length, (i) => values[i]!);
  }
}

/** List of type map: items are identified by their map keys. */
export class MapList extends KeyedList {
  readonly #keys: readonly string[];

  /** @param keys `x-kubernetes-list-map-keys` as escaped property names */
  constructor(size: number, make: (i: number) => Value, keys: readonly string[]) {
    super(size, make);
    this.#keys = keys;
  }

  protected override keyOf(item: Value, budget: Budget): string {
    if (!(item instanceof Mapping)) return identity(item, budget);
    return JSON.stringify(this.#keys.map((key) => identity(item.find(key, budget), budget)));
  }

  protected override remade(values: readonly Value[]): List {
    return new MapList(values.length, (i) => values[i]!, this.#keys);
  }
}

function itemsOf(list: List): Value[] {
  return Array.from({ length: list.size }, (_, i) => list.at(i));
}

/** String that is the same for equal values. */
function identity(value: Value | undefined, budget: Budget): string {
  budget.spend();
  if (value === undefined) return "";
  if (value instanceof List) return budget.within(() => `[${itemsOf(value).map((item) => identity(item, budget))}]`);
  if (value instanceof Mapping) {
    const field = (key: Value): string => `${identity(key, budget)}:${identity(value.find(key, budget), budget)}`;
    return budget.within(() => `{${[...value.keys()].map(field).sort()}}`);
  }
  if (value instanceof Failure) {
    budget.spendOnText(value.message.length);
    return `error ${JSON.stringify(value.message)}`;
  }
  if (value instanceof Uint8Array) budget.spendOnText(value.length);
  if (value instanceof Uint8Array) return `bytes ${Buffer.from(value).toString("base64")}`;
  const text = convert("string", value, budget);
  return typeof text === "string" ? `${typeOf(value)} ${JSON.stringify(text)}` : typeOf(value);
}
