import { ConnectionError, errorCodes, tooMuch } from "../wire/connection-error.ts";
import type { ConnectionBudget } from "./client-budgets.ts";
import { TokenBucket } from "./token-bucket.ts";

/** Streams that a client resets. Source: nghttp2's limits after CVE-2023-44487 */
const resetBudget = { most: 1_000, perSecond: 33 };
/** Frames without effect: PING, PRIORITY, empty DATA, refused streams and the like. */
const idleBudget = { most: 1_000, perSecond: 100 };
const mostRemembered = 250;

/**
 * Accounting of one connection's abusive or late frames: rate limits for resets and no-op frames, and the recently reset streams
 * for which late frames are legitimate.
 */
export class AbuseLimits {
  readonly #resets = new TokenBucket(resetBudget);
  readonly #client: ConnectionBudget | undefined;
  readonly #idleFrames = new TokenBucket(idleBudget);
  /** Streams that the server has reset most recently, oldest first. */
  readonly #weReset: number[] = [];

  /** @param client budget shared with the client's other connections */
  constructor(client?: ConnectionBudget) {
    this.#client = client;
  }

  /** Counts a stream that is reset after work on it has begun. @throws ConnectionError above the rate limit */
  countReset(): void {
    if (!this.#resets.spend() || this.#client?.spendReset() === false) throw tooMuch("too many reset streams");
  }

  /** Counts a frame without effect. @throws ConnectionError above the rate limit */
  countIdle(): void {
    if (!this.#idleFrames.spend()) throw tooMuch("too many frames without effect");
  }

  /** Remembers a stream that the server has reset, for {@link checkLate}. */
  weReset(stream: number): void {
    if (this.#weReset.push(stream) > mostRemembered) this.#weReset.shift();
  }

  /**
   * Checks a frame that arrives for a closed stream. @throws ConnectionError unless the server has reset the stream recently: the
   * frame was in flight then
   */
  checkLate(stream: number): void {
    if (!this.#weReset.includes(stream)) throw new ConnectionError(errorCodes.streamClosed, "frame on a closed stream");
  }
}
