/** So many at once, and so many more each second. */
export interface BudgetLimits {
  readonly most: number;
  readonly perSecond: number;
}

/** What a client may do that costs it less than us. */
export class Budget {
  readonly #limits: BudgetLimits;
  #left: number;
  #at = performance.now();

  constructor(limits: BudgetLimits) {
    this.#limits = limits;
    this.#left = limits.most;
  }

  /** @returns false when it is used up */
  spend(): boolean {
    if (this.#left >= 1) {
      this.#left--;
      return true;
    }
    const now = performance.now();
    const { most, perSecond } = this.#limits;
    this.#left = Math.min(most, this.#left + ((now - this.#at) / 1000) * perSecond);
    this.#at = now;
    if (this.#left < 1) return false;
    this.#left--;
    return true;
  }
}
