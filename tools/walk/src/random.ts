/** Pseudo-random numbers, deterministic for a seed. Source: mulberry32, a public domain generator. */
export class Random {
  private state: number;

  /** @param parts numbers that identify the sequence, such as seed and request number. */
  constructor(...parts: readonly number[]) {
    this.state = parts.reduce((hash, part) => Math.imul(hash ^ part, 0x9e3779b1) ^ (hash >>> 15), 0x2545f491);
  }

  /** A number in [0, 1). */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** An integer in [0, limit). */
  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** @param values not empty. */
  pick<T>(values: readonly T[]): T {
    return values[this.below(values.length)]!;
  }
}
