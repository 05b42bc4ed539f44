import type { IncomingHttpHeaders } from "node:http";
import { PassThrough, type Readable } from "node:stream";
import { BodyParts, type TransportResponse } from "@coxswain/apimachinery/client/transport-messages";
import type { ResponseStream } from "@coxswain/apimachinery/serving/exchange";
import { whenDrained } from "@coxswain/apimachinery/serving/exchange-parts";

/** Unread bytes from which the writer is to wait. */
const mostUnread = 64 * 1024;

interface Listeners {
  /** Nothing more will be written or read. */
  over(): void;
  /** The reader has gone before the end. */
  gone(): void;
}

/**
 * A response that is read while it is written. Clients read it with `bytes` or `parts`; a Node stream, which would cost more than the
 * rest of a watch event, is made for a reader that asks for `body`.
 */
export class StreamedResponse implements TransportResponse, ResponseStream {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly #listeners: Listeners;
  /** Chunks that wait for a reader, or for the end of the body. */
  readonly #received: Buffer[] = [];
  #unread = 0;
  #waiting: PromiseWithResolvers<void>[] = [];
  #end: { readonly failure: Error | undefined } | undefined;
  #isGone = false;
  #parts: BodyParts | undefined;
  #whole: PromiseWithResolvers<Buffer> | undefined;
  #body: PassThrough | undefined;

  constructor(status: number, headers: IncomingHttpHeaders, listeners: Listeners) {
    this.status = status;
    this.headers = headers;
    this.#listeners = listeners;
  }

  // TransportResponse

  get body(): Readable {
    if (this.#body !== undefined) return this.#body;
    const body = new PassThrough();
    this.#body = body;
    body.once("close", () => this.cancel());
    // Without a listener an error would be an uncaught exception; readers of the stream still receive it.
    body.on("error", () => {});
    for (const bytes of this.#received.splice(0)) body.write(bytes);
    this.consumed(this.#unread); // from now on a writer waits for the stream
    if (this.#end?.failure !== undefined) body.destroy(this.#end.failure);
    else if (this.#end !== undefined) body.end();
    return body;
  }

  bytes(): Promise<Buffer> {
    this.#whole = Promise.withResolvers();
    this.consumed(this.#unread);
    this.#passEnd();
    return this.#whole.promise;
  }

  parts(): AsyncIterableIterator<Buffer> {
    this.#parts = new BodyParts(this, () => {});
    for (const bytes of this.#received.splice(0)) this.#parts.receive(bytes);
    this.#passEnd();
    return this.#parts;
  }

  // The source of its parts

  consumed(bytes: number): void {
    this.#unread -= bytes;
    if (this.#unread >= mostUnread) return;
    for (const { resolve } of this.#waiting.splice(0)) resolve();
  }

  cancel(): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.#received.length = 0;
    for (const { reject } of this.#waiting.splice(0)) reject(clientGone());
    this.#listeners.over();
    this.#listeners.gone();
  }

  // ResponseStream

  write(chunk: Buffer | string): boolean {
    if (this.#body !== undefined) return this.#body.destroyed ? false : this.#body.write(chunk);
    if (this.#isGone) return false;
    const bytes = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
    this.#unread += bytes.length;
    if (this.#parts !== undefined) this.#parts.receive(bytes);
    else this.#received.push(bytes);
    if (this.#whole !== undefined) this.consumed(bytes.length);
    return this.#unread < mostUnread;
  }

  drained(): Promise<void> {
    if (this.#body !== undefined) return whenDrained(this.#body);
    if (this.#isGone) return Promise.reject(clientGone());
    if (this.#unread < mostUnread) return Promise.resolve();
    const waiting = Promise.withResolvers<void>();
    this.#waiting.push(waiting);
    return waiting.promise;
  }

  end(chunk?: Buffer | string): void {
    if (chunk !== undefined) this.write(chunk);
    this.#end ??= { failure: undefined };
    if (this.#body !== undefined) return void this.#body.end();
    this.#passEnd();
    this.#listeners.over();
  }

  /** Breaks the response off, unless it has ended. */
  destroy(reason: Error): void {
    if (this.#body === undefined && this.#end !== undefined) return;
    this.#end ??= { failure: reason };
    if (this.#body !== undefined) return void this.#body.destroy(reason);
    // As a stream does: what breaks many responses off is done before the first reader goes on.
    process.nextTick(() => this.#passEnd());
    this.cancel();
  }

  #passEnd(): void {
    if (this.#end === undefined) return;
    const { failure } = this.#end;
    this.#parts?.end(failure);
    if (failure !== undefined) this.#whole?.reject(failure);
    else this.#whole?.resolve(this.#received.length === 1 ? this.#received[0]! : Buffer.concat(this.#received));
  }
}

const clientGone = (): Error => new Error("the client disconnected");
