import { ResponseHeaders } from "./exchange-parts.ts";

const clientGone = "the client went away";

/** What an exchange is over either protocol: headers that are set before the answer, a client that may go, a place in the server's roster. */
export abstract class ExchangeBase {
  bytesWritten = 0;
  place = -1;
  answeredMs: number | undefined;
  onUnread: (() => void) | undefined;
  /** When the client was last waited for and has not read since, as `performance.now()`. */
  unreadMs: number | undefined;
  protected readonly answerHeaders = new ResponseHeaders();
  #controller: AbortController | undefined;
  #isGone = false;

  get isGone(): boolean {
    return this.#isGone;
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#isGone && !this.#controller.signal.aborted) this.#controller.abort(new Error(clientGone));
    return this.#controller.signal;
  }

  /** Nobody takes an answer any more. */
  protected setGone(reason = clientGone): void {
    this.#isGone = true;
    this.#controller?.abort(new Error(reason));
  }

  /** @param drained resolves when the client has read */
  protected async whenRead(drained: Promise<void>): Promise<void> {
    this.unreadMs = performance.now();
    this.onUnread?.();
    await drained;
    this.unreadMs = undefined;
  }

  setHeader(name: string, value: string | string[]): void {
    this.answerHeaders.set(name, value);
  }

  appendHeader(name: string, value: string): void {
    this.answerHeaders.append(name, value);
  }
}
