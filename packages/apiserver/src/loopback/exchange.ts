import type { IncomingHttpHeaders, OutgoingHttpHeaders } from "node:http";
import { Readable } from "node:stream";
import type { TransportRequest, TransportResponse } from "@coxswain/apimachinery/client/transport-messages";
import { requestEntityTooLarge } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Exchange, ResponseStream } from "@coxswain/apimachinery/serving/exchange";
import { StreamedResponse } from "./streamed-response.ts";

/** A request from the server to itself: no socket, no TLS; the response has the form that the client's transport expects. */
export class LoopbackExchange implements Exchange {
  onUnread: Exchange["onUnread"];
  /** Called when nothing of the request or its response is outstanding, perhaps several times. */
  onOver: () => void = () => {};
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[] = [];
  readonly httpVersion = "2.0";
  readonly remoteAddress = "127.0.0.1";
  readonly tls = undefined;
  readonly upgrade = undefined;
  readonly signal: AbortSignal;
  readonly response: Promise<TransportResponse>;
  status = 0;
  bytesWritten = 0;
  readonly #body: Buffer;
  readonly #abort = new AbortController();
  readonly #answerHeaders: IncomingHttpHeaders = {};
  #answer: (response: TransportResponse) => void = () => {};
  #fail: (err: Error) => void = () => {};
  #stream: StreamedResponse | undefined;
  #unfollow: () => void = () => {};
  #isEnded = false;

  constructor(request: TransportRequest) {
    this.method = request.method;
    this.url = request.path;
    this.headers = { host: "loopback", ...(request.headers as IncomingHttpHeaders) }; // cast: no list of values is changed
    this.#body = Buffer.isBuffer(request.body) ? request.body : Buffer.from(request.body ?? "");
    this.signal = this.#abort.signal;
    this.response = new Promise((resolve, reject) => {
      this.#answer = resolve;
      this.#fail = reject;
    });
    // The caller may have gone away; avoids an unhandled rejection then.
    this.response.catch(() => {});
    this.#follow(request.signal);
  }

  get isGone(): boolean {
    return this.signal.aborted;
  }

  get headersSent(): boolean {
    return this.status !== 0;
  }

  async body(limitBytes: number): Promise<Buffer> {
    if (this.#body.length > limitBytes) throw requestEntityTooLarge(`limit is ${limitBytes}`);
    return this.#body;
  }

  get bodyIsReceived(): boolean {
    return true;
  }

  get bodyBytes(): number {
    return this.#body.length;
  }

  bodyStream(): NodeJS.ReadableStream {
    return Readable.from([this.#body]);
  }

  setHeader(name: string, value: string | string[]): void {
    this.#answerHeaders[name.toLowerCase()] = value;
  }

  appendHeader(name: string, value: string): void {
    const before = this.#answerHeaders[name.toLowerCase()];
    this.#answerHeaders[name.toLowerCase()] = before === undefined ? value : `${before}, ${value}`;
  }

  respond(status: number, headers: OutgoingHttpHeaders, body: Buffer | string = ""): void {
    if (this.headersSent) return;
    const bytes = typeof body === "string" ? Buffer.from(body) : body;
    this.status = status;
    this.bytesWritten = bytes.length;
    this.#isOver();
    this.#answer(new WholeResponse(status, this.#merged(headers), bytes));
  }

  stream(status: number, headers: OutgoingHttpHeaders): ResponseStream {
    const response = new StreamedResponse(status, this.#merged(headers), {
      over: () => this.#isOver(),
      gone: () => this.#end(new Error("the response is no longer read")),
    });
    this.#stream = response;
    this.status = status;
    this.#answer(response);
    return {
      write: (chunk) => {
        this.bytesWritten += chunk.length;
        return response.write(chunk);
      },
      drained: () => response.drained(),
      end: (chunk) => {
        this.bytesWritten += chunk?.length ?? 0;
        response.end(chunk);
      },
    };
  }

  destroy(reason = new Error("the request was aborted")): void {
    this.#end(reason);
  }

  goAway(): void {}

  #merged(headers: OutgoingHttpHeaders): IncomingHttpHeaders {
    const merged: IncomingHttpHeaders = { ...this.#answerHeaders };
    for (const [name, value] of Object.entries(headers)) {
      if (value !== undefined) merged[name.toLowerCase()] = typeof value === "number" ? String(value) : value;
    }
    return merged;
  }

  /**
   * Until the response is over: the caller's signal may live as long as the process, and AbortSignal.any would keep each request that
   * listens for as long.
   */
  #follow(caller: AbortSignal | undefined): void {
    if (caller === undefined) return;
    const onAbort = (): void => this.#end(caller.reason);
    if (caller.aborted) onAbort();
    else caller.addEventListener("abort", onAbort, { once: true });
    this.#unfollow = () => caller.removeEventListener("abort", onAbort);
  }

  #isOver(): void {
    this.#unfollow();
    this.onOver();
  }

  /** Ends what is outstanding before listeners of the signal run, without an event of its own. */
  #end(reason: Error): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#isOver();
    this.#fail(reason);
    this.#stream?.destroy(reason);
    this.#abort.abort(reason);
  }
}

/** A response whose body is complete. The client reads it with `bytes`: a stream would cost more than the rest of a short request. */
class WholeResponse implements TransportResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly #bytes: Buffer;
  #body: Readable | undefined;

  constructor(status: number, headers: IncomingHttpHeaders, bytes: Buffer) {
    this.status = status;
    this.headers = headers;
    this.#bytes = bytes;
  }

  get body(): Readable {
    this.#body ??= Readable.from(this.#bytes.length === 0 ? [] : [this.#bytes]);
    return this.#body;
  }

  bytes(): Promise<Buffer> {
    return Promise.resolve(this.#bytes);
  }
}
