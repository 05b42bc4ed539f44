/** Requests and responses, independent of the HTTP version. */
import type http from "node:http";
import type { Readable } from "node:stream";

export interface TransportRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: Buffer | string | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface TransportResponse {
  readonly status: number;
  /** Lower-case names. */
  readonly headers: http.IncomingHttpHeaders;
  /** The value of one of `headers`, at less cost. @param name lower-case */
  header?(name: string): string | undefined;
  /** Must be read completely or destroyed. Reading slowly exerts backpressure on the server (flow control). */
  readonly body: Readable;
  /** Reads the complete body, at less cost than from the stream. May be called once, instead of using `body`. @throws like `readBody` */
  bytes?(): Promise<Buffer>;
  /** The chunks of the body as they arrive, at less cost than from the stream. May be called once, instead of using `body`. */
  parts?(): AsyncIterableIterator<Buffer>;
}

/** Where a body comes from. */
interface BodySource {
  /** Called when so many bytes have been read, which the sender may send again. */
  consumed(bytes: number): void;
  /** Called when no more is read. */
  cancel(): void;
}

/** The chunks of a body for one reader, without a stream: most events of a watch arrive alone, and each would pass through the stream's queue. */
export class BodyParts implements AsyncIterableIterator<Buffer> {
  readonly #source: BodySource;
  readonly #onCancelled: () => void;
  /** Chunks received before they were requested. Their bytes count as consumed when they are read. */
  #early: Buffer[] = [];
  #waiting: PromiseWithResolvers<IteratorResult<Buffer>> | undefined;
  #end: { readonly failure: Error | undefined } | undefined;

  /** @param onCancelled called when no more is read */
  constructor(source: BodySource, onCancelled: () => void) {
    this.#source = source;
    this.#onCancelled = onCancelled;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  receive(bytes: Buffer): void {
    const waiting = this.#waiting;
    if (waiting === undefined) {
      this.#early.push(bytes);
      return;
    }
    this.#waiting = undefined;
    this.#source.consumed(bytes.length);
    waiting.resolve({ value: bytes, done: false });
  }

  end(failure: Error | undefined): void {
    this.#end ??= { failure };
    if (this.#waiting === undefined) return;
    if (failure === undefined) this.#waiting.resolve({ value: undefined, done: true });
    else this.#waiting.reject(failure);
    this.#waiting = undefined;
  }

  next(): Promise<IteratorResult<Buffer>> {
    if (this.#end?.failure !== undefined) return Promise.reject(this.#end.failure);
    if (this.#early.length > 0) {
      const value = this.#early.length === 1 ? this.#early[0]! : Buffer.concat(this.#early);
      this.#early = [];
      this.#source.consumed(value.length);
      return Promise.resolve({ value, done: false });
    }
    if (this.#end !== undefined) return Promise.resolve({ value: undefined, done: true });
    this.#waiting = Promise.withResolvers();
    return this.#waiting.promise;
  }

  /** Cancels the request unless it is over. */
  return(): Promise<IteratorResult<Buffer>> {
    this.#early = [];
    this.end(undefined);
    this.#source.cancel();
    this.#onCancelled();
    return Promise.resolve({ value: undefined, done: true });
  }
}
