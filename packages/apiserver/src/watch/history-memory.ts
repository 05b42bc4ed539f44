/** A history that can give up its oldest change. */
interface Holder {
  readonly sizeBytes: number;
  /** Whether it must not have fewer changes. */
  readonly isShortest: boolean;
  dropOldest(): void;
}

/** The bytes that the histories of all watch caches hold together. Beyond the limit the largest one gives up its oldest changes. */
export class HistoryMemory {
  readonly limitBytes: number;
  readonly #histories = new Set<Holder>();
  #bytes = 0;

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes;
  }

  /** What is held. Above `limitBytes` only when each history holds its minimum. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Counts what a history has taken in (positive) or dropped (negative). */
  count(history: Holder, bytes: number): void {
    this.#bytes += bytes;
    if (history.sizeBytes > 0) this.#histories.add(history);
    else this.#histories.delete(history);
  }

  makeRoom(): void {
    while (this.#bytes > this.limitBytes) {
      let largest: Holder | undefined;
      for (const one of this.#histories) {
        if (!one.isShortest && one.sizeBytes > (largest?.sizeBytes ?? 0)) largest = one;
      }
      if (largest === undefined) return;
      largest.dropOldest();
    }
  }
}
