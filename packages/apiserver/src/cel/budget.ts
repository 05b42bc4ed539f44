/**
 * How much an evaluation may do: nobody's rule holds the server. A step is the evaluation of one part of an expression, or
 * about as much work: an item compared, some characters copied.
 */
export class Budget {
  #left: number;
  #depth = 0;

  constructor(steps: number) {
    this.#left = steps;
  }

  get left(): number {
    return this.#left;
  }

  /** To be called before the work is done. @throws BudgetExceeded */
  spend(steps = 1): void {
    this.#left -= steps;
    if (this.#left < 0) throw new BudgetExceeded();
  }

  /** For work on texts: ten characters a step. */
  spendOnText(...lengths: readonly number[]): void {
    this.spend(1 + lengths.reduce((sum, length) => sum + length, 0) / 10);
  }

  /** For work on what is within a value: a macro can put as many values within one another as a list has items. @throws BudgetExceeded */
  within<T>(work: () => T): T {
    if (++this.#depth > mostLevels) throw new BudgetExceeded();
    const result = work();
    this.#depth--;
    return result;
  }
}

/** Of values within values; schemas have fewer. */
const mostLevels = 500;

/** Unlike errors of the language, no operator of it gets over this one. */
export class BudgetExceeded extends Error {
  constructor() {
    super("operation cancelled: actual cost limit exceeded");
  }
}
