/** Steps between two pauses: about 2 ms. */
const stepsPerPause = 30_000;

/**
 * Cost limit of one evaluation, so that a rule cannot occupy the server. A step is the evaluation of one node of the
 * expression or a similar amount of work: one item compared, ten characters copied.
 */
export class Budget {
  #left: number;
  /** What is left at the next pause. */
  #pauseAt: number;
  #depth = 0;

  constructor(steps: number) {
    this.#left = steps;
    this.#pauseAt = steps - stepsPerPause;
  }

  get left(): number {
    return this.#left;
  }

  /** Call before doing the work. @throws BudgetExceeded */
  spend(steps = 1): void {
    this.#left -= steps;
    if (this.#left < 0) throw new BudgetExceeded();
  }

  /** True when the work should yield to the event loop now. */
  isPauseDue(): boolean {
    if (this.#left > this.#pauseAt) return false;
    this.#pauseAt = this.#left - stepsPerPause;
    return true;
  }

  /** Charges work on strings or bytes: one step per ten characters. @throws BudgetExceeded */
  spendOnText(...lengths: readonly number[]): void {
    this.spend(1 + lengths.reduce((sum, length) => sum + length, 0) / 10);
  }

  /**
   * Runs recursive work one level deeper. Limits the recursion, because a macro can nest values as deep as a list has items.
   * @throws BudgetExceeded
   */
  within<T>(work: () => T): T {
    if (++this.#depth > mostLevels) throw new BudgetExceeded();
    const result = work();
    this.#depth--;
    return result;
  }
}

/** Maximum nesting of values; greater than the nesting limit of schemas. */
const mostLevels = 500;

/** Thrown, unlike CEL errors (`Failure`), so that no operator of the language can absorb it. */
export class BudgetExceeded extends Error {
  constructor() {
    super("operation cancelled: actual cost limit exceeded");
  }
}
