import { ResponseHeaders } from "./exchange-parts.ts";

const clientGone = "the client went away";

/** State common to exchanges of all protocols: early headers, client disconnection, index in the server's set. */
export abstract class ExchangeBase {
  bytesWritten = 0;
  place = -1;
  answeredMs: number | undefined;
  onUnread: (() => void) | undefined;
  /** Since when the handler has been waiting for the client to read, as `performance.now()`; undefined when it is not. */
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

  /** Marks the exchange as aborted: the response cannot be delivered. */
  protected setGone(reason = clientGone): void {
    this.#isGone = true;
    this.#controller?.abort(new Error(reason));
  }

  /** Tracks a wait for the client. @param drained resolves when the client has read */
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
