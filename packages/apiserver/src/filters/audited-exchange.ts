import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
import type { TLSSocket } from "node:tls";
import type { Exchange, ResponseStream } from "@coxswain/apimachinery/serving/exchange";

/** Receives the parts of a response that audit events record. */
interface AnswerObserver {
  started(code: number): void;
  /** The body of a response that is neither a watch nor a proxied stream; called before `complete`. */
  body(headers: OutgoingHttpHeaders, bytes: Buffer): void;
  /** Whether streamed bodies are to be collected. */
  readonly wantsStreams: boolean;
  /** Called before a chunk of a streamed body is collected. @returns false to stop collecting */
  reserve(bytes: number): boolean;
  /** Called once. The response ends after the returned promise settles. */
  complete(code: number): Promise<unknown> | undefined;
}

/**
 * An exchange whose response ends only after its audit event was written, when the backend is blocking: a client that
 * received the response can rely on the record.
 */
export class AuditedExchange implements Exchange {
  readonly #inner: Exchange;
  readonly #observer: AnswerObserver;
  #status = 0;
  #bytes = 0;
  #ended: Promise<unknown> | undefined;
  #isComplete = false;

  constructor(inner: Exchange, observer: AnswerObserver) {
    this.#inner = inner;
    this.#observer = observer;
  }

  respond(status: number, headers: OutgoingHttpHeaders, body?: Buffer | string): void {
    if (this.headersSent) {
      this.#inner.respond(status, headers, body);
      return;
    }
    this.#status = status;
    const bytes = typeof body === "string" ? Buffer.from(body) : body;
    this.#bytes = bytes?.length ?? 0;
    if (bytes !== undefined) this.#observer.body(headers, bytes);
    this.#observer.started(status);
    this.#end(() => this.#inner.respond(status, headers, body));
  }

  stream(status: number, headers: OutgoingHttpHeaders): ResponseStream {
    this.#status = status;
    this.#observer.started(status);
    const stream = this.#inner.stream(status, headers);
    let collected: Buffer[] | undefined = this.#observer.wantsStreams ? [] : undefined;
    // Written chunks are not modified afterwards, so they are not copied.
    const collect = (chunk: Buffer | string): void => {
      const bytes = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
      if (collected !== undefined && this.#observer.reserve(bytes.length)) collected.push(bytes);
      else collected = undefined;
    };
    return {
      write(chunk) {
        collect(chunk);
        return stream.write(chunk);
      },
      drained: () => stream.drained(),
      end: (chunk) => {
        if (chunk !== undefined) collect(chunk);
        if (collected !== undefined) this.#observer.body(headers, Buffer.concat(collected));
        collected = undefined;
        this.#end(() => stream.end(chunk));
      },
    };
  }

  destroy(): void {
    void this.complete();
    this.#inner.destroy();
  }

  /** Called when the handler has finished. Resolves when the response counts as sent. */
  complete(): Promise<unknown> | undefined {
    if (!this.#isComplete) {
      this.#isComplete = true;
      this.#ended = this.#observer.complete(this.#status || this.#inner.status);
    }
    return this.#ended;
  }

  #end(send: () => void): void {
    const written = this.complete();
    if (written === undefined) send();
    else this.#ended = written.then(send);
  }

  get headersSent(): boolean {
    return this.#status !== 0 || this.#inner.headersSent;
  }
  get status(): number {
    return this.#status || this.#inner.status;
  }
  get bytesWritten(): number {
    return this.#bytes || this.#inner.bytesWritten;
  }
  get bodyIsReceived(): boolean {
    return this.#inner.bodyIsReceived;
  }
  get bodyBytes(): number {
    return this.#inner.bodyBytes;
  }
  get method(): string {
    return this.#inner.method;
  }
  get url(): string {
    return this.#inner.url;
  }
  get headers(): IncomingHttpHeaders {
    return this.#inner.headers;
  }
  get rawHeaders(): readonly string[] {
    return this.#inner.rawHeaders;
  }
  get httpVersion(): "1.1" | "2.0" {
    return this.#inner.httpVersion;
  }
  get remoteAddress(): string {
    return this.#inner.remoteAddress;
  }
  get tls(): TLSSocket | undefined {
    return this.#inner.tls;
  }
  get isGone(): boolean {
    return this.#inner.isGone;
  }
  get signal(): AbortSignal {
    return this.#inner.signal;
  }
  get upgrade(): Exchange["upgrade"] {
    return this.#inner.upgrade;
  }
  get onUnread(): Exchange["onUnread"] {
    return this.#inner.onUnread;
  }
  set onUnread(called: Exchange["onUnread"]) {
    this.#inner.onUnread = called;
  }
  body(limitBytes: number): Promise<Buffer> {
    return this.#inner.body(limitBytes);
  }
  bodyStream(): NodeJS.ReadableStream {
    return this.#inner.bodyStream();
  }
  setHeader(name: string, value: string | string[]): void {
    this.#inner.setHeader(name, value);
  }
  appendHeader(name: string, value: string): void {
    this.#inner.appendHeader(name, value);
  }
  goAway(): void {
    this.#inner.goAway();
  }
}
