/** Bytes in a cache that can be recomputed. A separate object from their source, so that the share does not keep the source alive. */
export interface CachedBytes {
  readonly sizeBytes: number;
  /** Set by readers; cleared when eviction passes over the bytes. */
  used: boolean;
  /** Time when eviction last passed over them, as `performance.now()`. Set by the share. */
  since: number;
  /** Items of one owner do not evict each other. Otherwise the items of a list larger than the share would do so for each reader. */
  readonly owner?: object;
  /** Releases the bytes. `sizeBytes` does not change. */
  drop(): void;
}

/** Bytes unused for this long are dropped when others are added; their owners may have been replaced. */
export const idleMs = 5 * 60_000;

/**
 * A memory limit for one cache. Eviction is second chance (CLOCK): items used since they were last passed over are
 * kept for another round.
 */
export class ByteShare {
  readonly limitBytes: number;
  readonly #largestBytes: number;
  #bytes = 0;
  /** Eviction order; the head is at `#from`. */
  #queue: CachedBytes[] = [];
  #from = 0;

  /** @param largestBytes a larger item is not kept */
  constructor(limitBytes: number, largestBytes = limitBytes / 8) {
    this.limitBytes = limitBytes;
    this.#largestBytes = largestBytes;
  }

  /** Size of all items; at most `limitBytes`. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Adds the item and evicts others if necessary. @returns false when it does not fit and was not added */
  keep(item: CachedBytes): boolean {
    if (item.sizeBytes > this.#largestBytes) return false;
    const now = performance.now();
    this.#dropIdle(now);
    // At most 100 second chances per call, so that the loop ends.
    for (let chances = 100; this.#bytes + item.sizeBytes > this.limitBytes; ) {
      if (item.owner !== undefined && this.#queue[this.#from]?.owner === item.owner) return false;
      if (this.#pass(now, chances > 0)) chances--;
    }
    if (this.#from > 1000 && this.#from * 2 > this.#queue.length) {
      this.#queue = this.#queue.slice(this.#from);
      this.#from = 0;
    }
    item.used = false;
    item.since = now;
    this.#bytes += item.sizeBytes;
    this.#queue.push(item);
    return true;
  }

  #dropIdle(now: number): void {
    while (this.#from < this.#queue.length && now - this.#queue[this.#from]!.since > idleMs) this.#pass(now, true);
  }

  /** Drops the head of the queue, or requeues it when it was used and `mayStay`. @returns whether it was requeued */
  #pass(now: number, mayStay: boolean): boolean {
    const oldest = this.#queue[this.#from++]!;
    if (oldest.used && mayStay) {
      oldest.used = false;
      oldest.since = now;
      this.#queue.push(oldest);
      return true;
    }
    this.#bytes -= oldest.sizeBytes;
    oldest.drop();
    return false;
  }
}
