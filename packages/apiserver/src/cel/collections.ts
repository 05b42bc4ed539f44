/** Lists and maps created by expressions. Source: cel-go v0.9 common/types/list.go, map.go */
import type { Budget } from "./budget.ts";
import { equal, Failure, List, Mapping, typeOf, Uint, type Value } from "./values.ts";

/**
 * A list backed by the first `size` items of an array. Longer lists may share the array, so that a fold appends in constant
 * time instead of copying its list in each iteration.
 */
export class MadeList extends List {
  readonly #items: Value[];
  readonly size: number;

  constructor(items: Value[]) {
    super();
    this.#items = items;
    this.size = items.length;
  }

  at(i: number): Value {
    return this.#items[i]!;
  }

  outOfRange(i: bigint): Failure {
    return new Failure(`index '${i}' out of range in list size '${this.size}'`);
  }

  equals(other: List, budget: Budget): boolean | Failure {
    if (this.size !== other.size) return false;
    let failure: Failure | undefined;
    for (let i = 0; i < this.size; i++) {
      const isEqual = equal(this.at(i), other.at(i), budget);
      if (isEqual === false) return false;
      if (isEqual !== true) failure ??= isEqual;
    }
    return failure ?? true;
  }

  concat(other: List, budget: Budget): List {
    if (this.size === 0) return other;
    if (other.size === 0) return this;
    const isLongest = this.#items.length === this.size;
    budget.spend(other.size + (isLongest ? 0 : this.size));
    const items = isLongest ? this.#items : this.#items.slice(0, this.size);
    for (let i = 0; i < other.size; i++) items.push(other.at(i));
    return new MadeList(items);
  }
}

/** A map created by an expression; iterates in insertion order. */
export class MadeMap extends Mapping {
  readonly #entries: ReadonlyMap<string, readonly [key: Value, value: Value]>;

  private constructor(entries: ReadonlyMap<string, readonly [Value, Value]>) {
    super();
    this.#entries = entries;
  }

  /** The last entry of a key wins. @returns a Failure for an unsupported key type */
  static of(entries: readonly (readonly [key: Value, value: Value])[], budget: Budget): MadeMap | Failure {
    const made = new Map<string, readonly [Value, Value]>();
    for (const entry of entries) {
      const text = keyText(entry[0]);
      if (text === undefined) return new Failure(`unsupported key type: ${typeOf(entry[0])}`);
      budget.spendOnText(text.length);
      made.set(text, entry);
    }
    return new MadeMap(made);
  }

  get size(): number {
    return this.#entries.size;
  }

  *keys(): Iterable<Value> {
    for (const [key] of this.#entries.values()) yield key;
  }

  protected override lookUp(key: Value): Value | undefined {
    const text = keyText(key);
    return text === undefined ? undefined : this.#entries.get(text)?.[1];
  }

  equals(other: Mapping, budget: Budget): boolean | Failure {
    if (this.size !== other.size) return false;
    let failure: Failure | undefined;
    for (const [key, value] of this.#entries.values()) {
      const found = other.find(key, budget);
      if (found === undefined) return false;
      const isEqual = equal(value, found, budget);
      if (isEqual === false) return false;
      if (isEqual !== true) failure ??= isEqual;
    }
    return failure ?? true;
  }
}

/** String that identifies a key and its type; undefined for values that cannot be keys. */
function keyText(key: Value): string | undefined {
  if (key instanceof Uint) return `uint:${key.value}`;
  return typeof key === "string" || typeof key === "bigint" || typeof key === "boolean" ? `${typeof key}:${key}` : undefined;
}
