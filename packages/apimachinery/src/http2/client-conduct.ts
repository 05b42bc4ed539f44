import { Budget } from "./budget.ts";
import type { ConnectionBudget } from "./client-budgets.ts";
import { ConnectionError, errorCodes, tooMuch } from "./connection-error.ts";

/** Streams that a client breaks off. Source: nghttp2's after CVE-2023-44487 */
const resetBudget = { most: 1_000, perSecond: 33 };
/** Frames that bring nothing forward. */
const idleBudget = { most: 1_000, perSecond: 100 };
const mostRemembered = 250;

/** What a client does that costs us more than itself, and what it may do only for not knowing better. */
export class ClientConduct {
  readonly #resets = new Budget(resetBudget);
  readonly #client: ConnectionBudget | undefined;
  readonly #idleFrames = new Budget(idleBudget);
  /** Streams that we have reset, the last ones. */
  readonly #weReset: number[] = [];

  /** @param client what it shares with the client's other connections */
  constructor(client?: ConnectionBudget) {
    this.#client = client;
  }

  /** Work was begun and is thrown away. @throws ConnectionError when that is too often */
  countReset(): void {
    if (!this.#resets.spend() || this.#client?.spendReset() === false) throw tooMuch("too many streams were broken off");
  }

  /** A frame moved nothing. @throws ConnectionError when that is too often */
  countIdle(): void {
    if (!this.#idleFrames.spend()) throw tooMuch("too many frames that bring nothing forward");
  }

  weReset(stream: number): void {
    if (this.#weReset.push(stream) > mostRemembered) this.#weReset.shift();
  }

  /** More comes of a stream that is over. @throws ConnectionError unless it was on its way when we reset the stream */
  checkLate(stream: number): void {
    if (!this.#weReset.includes(stream)) throw new ConnectionError(errorCodes.streamClosed, "more of a stream that is over");
  }
}
