/**
 * How much the check of one object by its schema may do: both come from users, and what there is to do is the product of
 * their sizes. A unit is about what it takes to look at one value, 1 µs.
 */
export class CheckBudget {
  #left: number;
  #untilYield = unitsPerStep;

  constructor(units = mostUnits) {
    this.#left = units;
  }

  /** To be called before the work is done. @throws ChecksExceeded */
  spend(units: number): void {
    this.#left -= units;
    this.#untilYield -= units;
    if (this.#left < 0) throw new ChecksExceeded();
  }

  /** Spends one unit. @returns whether a step is over, and others may have their turn. @throws ChecksExceeded */
  endsStep(): boolean {
    this.spend(1);
    if (this.#untilYield > 0) return false;
    this.#untilYield = unitsPerStep;
    return true;
  }
}

/** Two seconds: an object as large as requests may be, whose values have a pattern or some alternatives each. */
export const mostUnits = 2_000_000;

/** Less than a millisecond. */
const unitsPerStep = 500;

export class ChecksExceeded extends Error {
  constructor() {
    super(
      "takes too long to check: its size times what the schema asks of each value is more than the server does for one object",
    );
  }
}
