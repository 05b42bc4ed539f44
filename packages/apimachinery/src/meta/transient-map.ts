/**
 * What comes and goes with every request, by its key. Not a Map: one that has outgrown its table (or was cleared) leaves a table
 * behind that points to the next, and once one of them has reached the old generation, all that come after it survive every
 * young collection with whatever stood in them. The tables of an object point nowhere.
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

  /** As they are now: numbers ascending, texts in the order of their coming. */
  values(): V[] {
    return Object.values(this.#slots);
  }

  /** The first key in that order. */
  firstKey(): string | undefined {
    for (const key in this.#slots) return key;
    return undefined;
  }
}

/** Without a prototype: any text is a key like others. */
function emptySlots<K extends string | number, V>(): Record<K, V> {
  return Object.create(null) as Record<K, V>;
}
