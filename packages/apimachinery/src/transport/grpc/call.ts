import type { ClientConnection } from "../http2/client/connection.ts";
import type { ClientStream, Fields, StreamEnd, StreamHandlers } from "../http2/client/stream.ts";
import { encodeFields } from "../http2/wire/hpack.ts";
import type { GrpcMethod } from "./calls.ts";
import { asCallError, GrpcError, grpcCodes } from "./grpc-error.ts";

/** An established connection. */
export interface GrpcSession {
  readonly connection: ClientConnection;
  readonly keepalive: { callBegan(): void; callEnded(): void };
}

interface UnaryRequest {
  /** Encoded header fields. */
  readonly block: Buffer;
  readonly message: Buffer;
  readonly timeoutMs: number;
  readonly mostResponseBytes: number;
  readonly observer: GrpcMethod | undefined;
}

/** Messages are length-prefixed: a compressed flag, the length, the bytes. Source: grpc PROTOCOL-HTTP2.md */
const headBytes = 5;

/** One call with one response. */
export class UnaryCall implements StreamHandlers {
  readonly #session: GrpcSession;
  readonly #request: UnaryRequest;
  readonly #resolve: (message: Buffer) => void;
  readonly #reject: (err: GrpcError) => void;
  readonly #stream: ClientStream;
  readonly #timer: NodeJS.Timeout;
  #status = noFields;
  #first: Buffer | undefined;
  #more: Buffer[] | undefined;
  #size = 0;

  /** @throws Error when the connection accepts no more calls */
  constructor(session: GrpcSession, request: UnaryRequest, resolve: (message: Buffer) => void, reject: (err: GrpcError) => void) {
    this.#session = session;
    this.#request = request;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#stream = session.connection.request(request.block, framedMessage(request.message), true, this);
    session.keepalive.callBegan();
    request.observer?.started();
    request.observer?.sent();
    this.#timer = setTimeout(expire, request.timeoutMs, this);
  }

  fields(fields: Fields): void {
    if (isStatus(fields)) this.#status = fields;
  }

  data(bytes: Buffer): void {
    this.#size += bytes.length;
    const { mostResponseBytes } = this.#request;
    if (this.#size > mostResponseBytes + headBytes) {
      this.#abort(tooLarge(this.#size - headBytes, mostResponseBytes));
      return;
    }
    if (this.#first === undefined) this.#first = bytes;
    else if (this.#more === undefined) this.#more = [this.#first, bytes];
    else this.#more.push(bytes);
  }

  closed(end: StreamEnd): void {
    this.#ended();
    const { observer } = this.#request;
    if (this.#first !== undefined) observer?.received();
    observer?.handled(codeOf(this.#status));
    const failure = failureOf(this.#status, end);
    if (failure !== undefined) this.#reject(failure);
    else this.#take(this.#more === undefined ? this.#first : Buffer.concat(this.#more, this.#size));
  }

  /** The deadline is over. */
  expire(): void {
    const cause = new Error(`no answer in ${this.#request.timeoutMs} ms`);
    this.#abort(new GrpcError(grpcCodes.deadlineExceeded, "context deadline exceeded", { cause }));
  }

  #take(body: Buffer | undefined): void {
    if (body === undefined || body.length < headBytes) this.#reject(malformed("without a message"));
    else if (body[0] !== 0) this.#reject(malformed("that is compressed"));
    else if (body.readUInt32BE(1) !== body.length - headBytes) this.#reject(malformed("whose length is wrong"));
    else this.#resolve(body.subarray(headBytes));
  }

  #abort(err: GrpcError): void {
    this.#ended();
    this.#stream.cancel();
    this.#request.observer?.handled(err.code);
    this.#reject(err);
  }

  #ended(): void {
    clearTimeout(this.#timer);
    this.#session.keepalive.callEnded();
  }
}

const expire = (call: UnaryCall): void => call.expire();

const malformed = (how: string): GrpcError => new GrpcError(grpcCodes.internal, `received a response ${how}`);

export interface GrpcStreamHandlers {
  /** @param message a view on memory that is not reused; may be kept */
  message(message: Buffer): void;
  /** The last call, exactly once unless the stream is cancelled. @param err undefined for status OK */
  ended(err: GrpcError | undefined): void;
}

interface MessageStreamOptions {
  readonly mostMessageBytes: number;
  readonly observer?: GrpcMethod | undefined;
  /** Called when the stream has ended, for any reason. */
  readonly onOver?: () => void;
}

/** A call whose requests and responses are streams of messages. */
export class MessageStream implements StreamHandlers {
  readonly isPaced = true;
  readonly #handlers: GrpcStreamHandlers;
  readonly #options: MessageStreamOptions;
  readonly #read: (chunk: Buffer) => void;
  #stream: ClientStream | undefined;
  /** Messages written before the call was started. */
  #early: { readonly message: Uint8Array; readonly sent: (() => void) | undefined }[] = [];
  #hasEnded = false;
  #isPaused = false;
  /** Bytes received while paused, which are not yet returned to the window. */
  #owed = 0;
  #status = noFields;
  #isOver = false;

  constructor(handlers: GrpcStreamHandlers, options: MessageStreamOptions) {
    this.#handlers = handlers;
    this.#options = options;
    this.#read = newMessageReader((message) => {
      if (this.#isOver) return;
      options.observer?.received();
      handlers.message(message);
    }, options.mostMessageBytes);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** @param open opens the call's HTTP/2 stream with the given handlers */
  start(open: (handlers: StreamHandlers) => ClientStream): void {
    if (this.#isOver) return;
    this.#stream = open(this);
    this.#options.observer?.started();
    for (const { message, sent } of this.#early.splice(0)) this.write(message, sent);
    if (this.#hasEnded) this.#stream.end();
  }

  /**
   * Buffered until the call is started.
   * @param sent called when flow control has admitted the message, or the call is over
   */
  write(message: Uint8Array, sent?: () => void): void {
    if (this.#isOver) {
      sent?.();
      return;
    }
    if (this.#stream === undefined) {
      this.#early.push({ message, sent });
      return;
    }
    this.#options.observer?.sent();
    this.#stream.write(framedMessage(message), sent);
  }

  /** Ends the stream of requests; responses continue. */
  end(): void {
    this.#hasEnded = true;
    this.#stream?.end();
  }

  /** Stops the server by flow control; messages that are on their way are still delivered. */
  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    const owed = this.#owed;
    this.#owed = 0;
    if (owed > 0) this.#stream?.consumed(owed);
  }

  /** No handler is called afterwards. */
  cancel(): void {
    if (this.#isOver) return;
    this.#settle();
    this.#stream?.cancel();
  }

  /** Ends a call that could not be started. */
  fail(err: GrpcError): void {
    if (this.#isOver) return;
    this.#settle();
    this.#handlers.ended(err);
  }

  fields(fields: Fields): void {
    if (isStatus(fields)) this.#status = fields;
  }

  data(bytes: Buffer): void {
    if (this.#isPaused) this.#owed += bytes.length;
    else this.#stream?.consumed(bytes.length);
    try {
      this.#read(bytes);
    } catch (err) {
      const failure =
        err instanceof MessageTooLarge
          ? new GrpcError(grpcCodes.resourceExhausted, `grpc: ${err.message}`, { cause: err })
          : asCallError(err); // of the handler, which could not decode the message
      this.#options.observer?.handled(failure.code);
      this.#stream?.cancel();
      this.fail(failure);
    }
  }

  closed(end: StreamEnd): void {
    if (this.#isOver) return;
    this.#options.observer?.handled(codeOf(this.#status));
    this.#settle();
    this.#handlers.ended(failureOf(this.#status, end));
  }

  #settle(): void {
    this.#isOver = true;
    for (const { sent } of this.#early.splice(0)) sent?.();
    this.#options.onOver?.();
  }
}

/** A received message is longer than the channel's limit. */
export class MessageTooLarge extends Error {}

/** Frames one message, uncompressed. */
export function framedMessage(message: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(headBytes + message.length);
  frame[0] = 0;
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, headBytes);
  return frame;
}

/**
 * Splits a stream of chunks into messages.
 * @param onMessage called with a view of the received bytes; the view may be kept
 * @param mostBytes upper bound of one message
 * @throws MessageTooLarge
 */
export function newMessageReader(
  onMessage: (message: Buffer) => void,
  mostBytes = Number.POSITIVE_INFINITY,
): (chunk: Buffer) => void {
  let parts: Buffer[] = [];
  let size = 0;
  let neededBytes = headBytes;
  return (chunk) => {
    parts.push(chunk);
    size += chunk.length;
    if (size < neededBytes) return;
    let rest = parts.length === 1 ? chunk : Buffer.concat(parts);
    neededBytes = headBytes;
    while (rest.length >= headBytes) {
      const length = rest.readUInt32BE(1);
      if (length > mostBytes) throw new MessageTooLarge(`received message larger than max (${length} vs. ${mostBytes})`);
      neededBytes = headBytes + length;
      if (rest.length < neededBytes) break;
      onMessage(rest.subarray(headBytes, neededBytes));
      rest = rest.subarray(neededBytes);
      neededBytes = headBytes;
    }
    parts = rest.length === 0 ? [] : [rest];
    size = rest.length;
  };
}

/** Decodes the percent-encoded `grpc-message`. Malformed text is returned as it is. */
export function statusMessage(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Blocks are cached; they are the same except for unusual deadlines. */
const mostBlocks = 64;

/** Encodes the header fields of calls. Blocks use no dynamic table, so that they can be concatenated. */
export class RequestBlocks {
  readonly #server: { readonly scheme: string; readonly authority: string; readonly userAgent?: string | undefined };
  readonly #known = new Map<string, Buffer>();

  constructor(server: { readonly scheme: string; readonly authority: string; readonly userAgent?: string | undefined }) {
    this.#server = server;
  }

  /**
   * @param path `/etcdserverpb.KV/Txn`
   * @param name of a further field, with its value; "": none
   */
  get(path: string, name: string, value: string, traceparent: string | undefined): Buffer {
    const block = this.#encoded(path, name, value);
    return traceparent === undefined ? block : Buffer.concat([block, encodeFields(["traceparent", traceparent])]);
  }

  #encoded(path: string, name: string, value: string): Buffer {
    const key = `${path} ${name} ${value}`;
    let block = this.#known.get(key);
    if (block === undefined) {
      const { scheme, authority, userAgent } = this.#server;
      const fields = {
        ":method": "POST",
        ":scheme": scheme,
        ":path": path,
        ":authority": authority,
        "content-type": "application/grpc",
        te: "trailers",
        ...(userAgent !== undefined && { "user-agent": userAgent }),
        ...(name !== "" && { [name]: value }),
      };
      block = encodeFields(Object.entries(fields).flat());
      if (this.#known.size >= mostBlocks) this.#known.clear();
      this.#known.set(key, block);
    }
    return block;
  }
}

const noFields: Fields = new Map();

/** True when the fields contain the status of the call: trailers, or headers of a response without a body. */
function isStatus(fields: Fields): boolean {
  return fields.has("grpc-status") || fields.get(":status") !== "200";
}

/** The gRPC status code; UNAVAILABLE when the server sent none. */
function codeOf(status: Fields): number {
  return Number(status.get("grpc-status") ?? grpcCodes.unavailable);
}

/** HTTP status of a response that is not gRPC's. Source: grpc doc/http-grpc-status-mapping.md */
const codesOfHttp: Readonly<Record<string, number>> = {
  400: grpcCodes.internal,
  401: grpcCodes.unauthenticated,
  403: grpcCodes.permissionDenied,
  404: grpcCodes.unimplemented,
  429: grpcCodes.unavailable,
  502: grpcCodes.unavailable,
  503: grpcCodes.unavailable,
  504: grpcCodes.unavailable,
};

/** @returns the error of a call that ended so; undefined for status OK */
function failureOf(status: Fields, end: StreamEnd): GrpcError | undefined {
  const code = status.get("grpc-status");
  if (code === "0" && end.type === "ended") return undefined;
  if (code !== undefined && code !== "0") return new GrpcError(Number(code), statusMessage(status.get("grpc-message") ?? ""));
  const http = code === undefined ? status.get(":status") : undefined;
  if (http !== undefined) {
    return new GrpcError(codesOfHttp[http] ?? grpcCodes.unknown, `unexpected HTTP status code received from server: ${http}`);
  }
  if (end.type === "ended") return new GrpcError(grpcCodes.unavailable, "server closed the stream without sending trailers");
  return new GrpcError(grpcCodes.unavailable, end.reason, { unprocessed: end.type === "refused" });
}

/** Source: google.golang.org/grpc rpc_util.go */
function tooLarge(bytes: number, mostBytes: number): GrpcError {
  return new GrpcError(grpcCodes.resourceExhausted, `grpc: received message larger than max (${bytes} vs. ${mostBytes})`);
}
