/** A binary heap with an index by key, for updating and deleting arbitrary items in O(log n). */
export class KeyedHeap<T> {
  readonly #items: T[] = [];
  readonly #places = new Map<string, number>();
  readonly #keyOf: (item: T) => string;
  readonly #compare: (a: T, b: T) => number;

  constructor(keyOf: (item: T) => string, compare: (a: T, b: T) => number) {
    this.#keyOf = keyOf;
    this.#compare = compare;
  }

  get size(): number {
    return this.#items.length;
  }

  get(key: string): T | undefined {
    const place = this.#places.get(key);
    return place === undefined ? undefined : this.#items[place];
  }

  peek(): T | undefined {
    return this.#items[0];
  }

  /** Adds the item or replaces the one with the same key. */
  set(item: T): void {
    const key = this.#keyOf(item);
    const place = this.#places.get(key) ?? this.#items.length;
    this.#put(item, place);
    this.#settle(place);
  }

  pop(): T | undefined {
    const first = this.#items[0];
    if (first !== undefined) this.delete(this.#keyOf(first));
    return first;
  }

  /** @returns the removed item */
  delete(key: string): T | undefined {
    const place = this.#places.get(key);
    if (place === undefined) return undefined;
    const removed = this.#items[place]!;
    const last = this.#items.pop()!;
    this.#places.delete(key);
    if (place < this.#items.length) {
      this.#put(last, place);
      this.#settle(place);
    }
    return removed;
  }

  #put(item: T, place: number): void {
    this.#items[place] = item;
    this.#places.set(this.#keyOf(item), place);
  }

  #settle(start: number): void {
    let place = start;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if (!this.#swapIfBefore(place, parent)) break;
      place = parent;
    }
    for (;;) {
      const left = 2 * place + 1;
      if (left >= this.#items.length) return;
      const right = left + 1;
      const child = right < this.#items.length && this.#compare(this.#items[right]!, this.#items[left]!) < 0 ? right : left;
      if (!this.#swapIfBefore(child, place)) return;
      place = child;
    }
  }

  /** Swaps the items at `a` and `b` when the one at `a` orders first. */
  #swapIfBefore(a: number, b: number): boolean {
    const first = this.#items[a]!;
    const second = this.#items[b]!;
    if (this.#compare(first, second) >= 0) return false;
    this.#put(first, b);
    this.#put(second, a);
    return true;
  }
}
