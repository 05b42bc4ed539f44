/**
 * Cost limit of validating one object by its schema. Users control both, and the cost is the product of their sizes. A unit is
 * about the cost of checking one value, 1 µs.
 */
export class CheckBudget {
  #left: number;
  #untilYield = unitsPerStep;

  constructor(units = mostUnits) {
    this.#left = units;
  }

  /** Call before doing the work. @throws ChecksExceeded */
  spend(units: number): void {
    this.#left -= units;
    this.#untilYield -= units;
    if (this.#left < 0) throw new ChecksExceeded();
  }

  /** Spends one unit. @returns true when the caller should yield to the event loop @throws ChecksExceeded */
  endsStep(): boolean {
    this.spend(1);
    if (this.#untilYield > 0) return false;
    this.#untilYield = unitsPerStep;
    return true;
  }
}

/** About 2 s; enough for an object of the maximum request size with a pattern or a few alternatives for each value. */
const mostUnits = 2_000_000;

/** About 0.5 ms. */
const unitsPerStep = 500;

/** The budget of a check is used up; the message is the detail of the validation error. */
export class ChecksExceeded extends Error {
  constructor() {
    super(
      "takes too long to validate: its size multiplied by the cost of validating each value exceeds the limit for one object",
    );
  }
}
