/** Random numbers that come again for the same seed. Source: mulberry32, a public domain generator. */
export class Random {
  private state: number;

  /** @param parts numbers that together name the sequence, such as a seed and a request's number. */
  constructor(...parts: readonly number[]) {
    this.state = parts.reduce((hash, part) => Math.imul(hash ^ part, 0x9e3779b1) ^ (hash >>> 15), 0x2545f491);
  }

  /** 0 up to 1, without 1. */
  next(): number {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number from 0 up to `limit`, without it. */
  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  /** @param values at least one. */
  pick<T>(values: readonly T[]): T {
    return values[this.below(values.length)] as T;
  }
}
