/**
 * A map for short-lived entries, e.g. one per request. Works around a property of V8's Map: when a Map grows or is cleared,
 * its old hash table keeps a pointer to the new one. Once an old table is in the old generation, all following tables and
 * the entries in them survive young-generation collections. Dictionary-mode objects have no such pointers.
 */
export class TransientMap<K extends string | number, V extends object> {
  #slots: Record<K, V> = emptySlots();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(key: K): V | undefined {
    return this.#slots[key];
  }

  set(key: K, value: V): void {
    if (this.#slots[key] === undefined) this.#size++;
    this.#slots[key] = value;
  }

  delete(key: K): void {
    if (this.#slots[key] === undefined) return;
    delete this.#slots[key];
    this.#size--;
  }

  clear(): void {
    this.#slots = emptySlots();
    this.#size = 0;
  }

  /** A snapshot of the values: numeric keys in ascending order, others in insertion order. */
  values(): V[] {
    return Object.values(this.#slots);
  }

  /** The first key in the order of `values`. */
  firstKey(): string | undefined {
    for (const key in this.#slots) return key;
    return undefined;
  }
}

/** No prototype, so that any string is an ordinary key. */
function emptySlots<K extends string | number, V>(): Record<K, V> {
  const empty: Record<K, V> = Object.create(null);
  return empty;
}
