import { Readable } from "node:stream";
import type { ClientConnection } from "../transport/http2/client/connection.ts";
import type { ClientStream, Fields, StreamEnd, StreamHandlers } from "../transport/http2/client/stream.ts";
import { errorCodes } from "../transport/http2/wire/connection-error.ts";
import { encodeFields } from "../transport/http2/wire/hpack.ts";
import { asError, ConnectionLost, NotProcessed } from "./transport-errors.ts";
import { BodyParts, type TransportRequest, type TransportResponse } from "./transport-messages.ts";

/**
 * Sends a request over HTTP/2. Resolves with the head of the response; rejects with NotProcessed if it is safe to retry.
 * @param release called once, when the stream is closed
 */
export function requestOverHttp2(
  connection: ClientConnection,
  url: URL,
  request: TransportRequest,
  inFlight: InFlight,
  release: () => void,
): Promise<TransportResponse> {
  const { promise, resolve, reject } = Promise.withResolvers<TransportResponse>();
  const answer = new Http2Answer(inFlight, request, { resolve, reject, release });
  try {
    request.signal?.throwIfAborted();
    answer.begin(connection, url);
  } catch (err) {
    release();
    reject(err);
  }
  return promise;
}

interface Outcome {
  resolve(response: TransportResponse): void;
  reject(err: unknown): void;
  release(): void;
}

/**
 * The requests in flight of each signal, which share one listener: an EventTarget compares a new listener with all that it has, and hundreds of
 * requests have the signal of one controller. A transport has one.
 */
export class InFlight {
  readonly #bySignal = new Map<AbortSignal, Http2Answer[]>();
  readonly #onAbort = ({ target }: Event): void => {
    const signal = target as AbortSignal; // cast: the listener is added to signals only
    const answers = this.#bySignal.get(signal) ?? [];
    this.#bySignal.delete(signal);
    for (const answer of answers) answer.abort(signal.reason);
  };

  add(signal: AbortSignal, answer: Http2Answer): void {
    const answers = this.#bySignal.get(signal);
    if (answers !== undefined) {
      answer.place = answers.push(answer) - 1;
      return;
    }
    this.#bySignal.set(signal, [answer]);
    signal.addEventListener("abort", this.#onAbort, { once: true });
  }

  remove(signal: AbortSignal, answer: Http2Answer): void {
    const answers = this.#bySignal.get(signal);
    if (answers?.[answer.place] !== answer) return;
    const last = answers.pop()!;
    if (last !== answer) {
      answers[answer.place] = last;
      last.place = answer.place;
    }
    if (answers.length > 0) return;
    this.#bySignal.delete(signal);
    signal.removeEventListener("abort", this.#onAbort);
  }
}

/** One request and its response. The body becomes a stream only on demand: most callers read it as a whole, which costs less. */
class Http2Answer implements StreamHandlers, TransportResponse {
  readonly isPaced = true;
  status = 0;
  /** Index among the requests of its signal. */
  place = 0;
  readonly #inFlight: InFlight;
  readonly #request: TransportRequest;
  readonly #outcome: Outcome;
  #stream: ClientStream | undefined;
  /** Undefined before the head of the response. */
  #fields: Fields | undefined;
  #headers: TransportResponse["headers"] | undefined;
  /** Received bytes that were not passed on yet. */
  #received: Buffer[] = [];
  #body: AnswerBody | undefined;
  #parts: BodyParts | undefined;
  #whole: PromiseWithResolvers<Buffer> | undefined;
  /** Bytes of the body that are still missing, by its content-length. */
  #missing: number | undefined;
  #isOver = false;
  /** Set when the body has ended; without a failure it is complete. */
  #end: { readonly failure: Error | undefined } | undefined;

  constructor(inFlight: InFlight, request: TransportRequest, outcome: Outcome) {
    this.#inFlight = inFlight;
    this.#request = request;
    this.#outcome = outcome;
  }

  // TransportResponse

  get headers(): TransportResponse["headers"] {
    this.#headers ??= Object.fromEntries(this.#fields ?? []);
    return this.#headers;
  }

  header(name: string): string | undefined {
    return this.#fields?.get(name);
  }

  get body(): Readable {
    if (this.#body === undefined) {
      this.#body = new AnswerBody(this.#stream!, () => this.#settle());
      for (const bytes of this.#received.splice(0)) this.#body.receive(bytes);
      this.#passEnd();
    }
    return this.#body;
  }

  bytes(): Promise<Buffer> {
    this.#whole = Promise.withResolvers();
    const early = this.#received.reduce((sum, { length }) => sum + length, 0);
    if (early > 0) this.#stream?.consumed(early);
    this.#passEnd();
    return this.#whole.promise;
  }

  parts(): AsyncIterableIterator<Buffer> {
    this.#parts = new BodyParts(this.#stream!, () => this.#settle());
    for (const bytes of this.#received.splice(0)) this.#parts.receive(bytes);
    this.#passEnd();
    return this.#parts;
  }

  // The stream

  /** @throws NotProcessed; TypeError for an invalid header field */
  begin(connection: ClientConnection, url: URL): void {
    const { body, signal } = this.#request;
    const bytes = typeof body === "string" ? Buffer.from(body) : (body ?? noBytes);
    const block = encodeFields(fieldsOf(this.#request, url, body === undefined ? undefined : bytes.length));
    try {
      this.#stream = connection.request(block, bytes, true, this);
    } catch (err) {
      throw new NotProcessed("the connection was closed before the request was sent", { cause: err });
    }
    if (signal !== undefined) this.#inFlight.add(signal, this);
  }

  fields(fields: Fields): void {
    if (this.#fields !== undefined) return; // trailers
    this.#fields = fields;
    this.status = Number(fields.get(":status"));
    const length = fields.get("content-length");
    const hasBody = this.#request.method !== "HEAD" && this.status !== 204 && this.status !== 304;
    if (length !== undefined && hasBody) this.#missing = Number(length);
    this.#outcome.resolve(this);
  }

  data(bytes: Buffer): void {
    if (this.#missing !== undefined) this.#missing -= bytes.length;
    const reader = this.#parts ?? this.#body;
    if (reader !== undefined) {
      reader.receive(bytes);
      return;
    }
    this.#received.push(bytes);
    if (this.#whole !== undefined) this.#stream?.consumed(bytes.length);
  }

  closed(end: StreamEnd): void {
    this.#settle();
    if (this.#fields === undefined)
      this.#outcome.reject(end.type === "ended" ? new ConnectionLost("the answer has no head") : errorOf(end));
    else if (end.type !== "ended") this.#ended(errorOf(end));
    else this.#ended((this.#missing ?? 0) === 0 ? undefined : new ConnectionLost("the answer was cut off"));
  }

  /** @param reason the signal's */
  abort(reason: unknown): void {
    this.#stream?.cancel();
    this.#settle();
    this.#outcome.reject(reason);
    this.#ended(asError(reason));
  }

  #ended(failure: Error | undefined): void {
    this.#end = { failure };
    this.#passEnd();
  }

  /** Passes the end of the body to its reader. */
  #passEnd(): void {
    if (this.#end === undefined) return;
    const { failure } = this.#end;
    this.#parts?.end(failure);
    if (failure === undefined) {
      this.#body?.push(null);
      this.#whole?.resolve(this.#received.length === 1 ? this.#received[0]! : Buffer.concat(this.#received));
    } else {
      this.#body?.destroy(failure);
      this.#whole?.reject(failure);
    }
  }

  /** The stream is over. */
  #settle(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { signal } = this.#request;
    if (signal !== undefined) this.#inFlight.remove(signal, this);
    this.#outcome.release();
  }
}

class AnswerBody extends Readable {
  readonly #stream: ClientStream;
  readonly #onDestroyed: () => void;
  /** Bytes that are not yet returned to the stream's window. */
  #owed = 0;

  /** @param onDestroyed called when no more is read */
  constructor(stream: ClientStream, onDestroyed: () => void) {
    super();
    this.#stream = stream;
    this.#onDestroyed = onDestroyed;
  }

  receive(bytes: Buffer): void {
    this.#owed += bytes.length;
    this.push(bytes);
  }

  /** Called by the stream when its buffer is below the high-water mark: returns the bytes read to the flow-control window. */
  override _read(): void {
    const owed = this.#owed;
    this.#owed = 0;
    if (owed > 0) this.#stream.consumed(owed);
  }

  override _destroy(err: Error | null, done: (err?: Error | null) => void): void {
    this.#stream.cancel();
    this.#onDestroyed();
    done(err);
  }
}

const noBytes = Buffer.alloc(0);
/** Source: RFC 9113, section 8.2.1 */
const forbidden = /[\0\r\n]/;

/** @throws TypeError for a value that could end a field */
function fieldsOf({ method, path, headers }: TransportRequest, url: URL, length: number | undefined): string[] {
  const fields = [":method", method, ":scheme", "https", ":authority", url.host, ":path", path];
  for (const name in headers) {
    const value = headers[name];
    if (typeof value === "string") fields.push(name.toLowerCase(), value);
    else for (const one of value ?? []) fields.push(name.toLowerCase(), one);
  }
  if (length !== undefined) fields.push("content-length", String(length));
  for (const text of fields) {
    if (forbidden.test(text)) throw new TypeError(`Invalid character in header content ${JSON.stringify(text)}`);
  }
  return fields;
}

function errorOf(end: Exclude<StreamEnd, { type: "ended" }>): Error {
  if (end.type === "refused") return new NotProcessed("the server refused the stream");
  const { code = errorCodes.none, reason } = end;
  if (code === errorCodes.none || code === errorCodes.cancel) return new ConnectionLost(reason);
  return Object.assign(new Error(`Stream closed with error code ${code}`), { code: "ERR_HTTP2_STREAM_ERROR" });
}
