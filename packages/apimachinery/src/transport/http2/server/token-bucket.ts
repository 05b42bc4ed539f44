/** Parameters of a token bucket: its capacity (`most`) and its refill rate. */
interface TokenBucketLimits {
  readonly most: number;
  readonly perSecond: number;
}

/** Token bucket for client actions that cost the server more than the client. */
export class TokenBucket {
  readonly #limits: TokenBucketLimits;
  #left: number;
  #at = performance.now();

  constructor(limits: TokenBucketLimits) {
    this.#limits = limits;
    this.#left = limits.most;
  }

  /** Takes one token. @returns false when the bucket is empty */
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
