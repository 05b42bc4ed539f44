import { GatheredBytes, ReceiveWindow, takePieces } from "../wire/buffers.ts";
import { defaultMaxFrameBytes, flags, frameTypes, headBytes, writeHead } from "../wire/frames.ts";
import type { RequestHead } from "./input.ts";

/** Callbacks of a stream to its connection. */
export interface StreamConnection {
  /** The stream has headers or data to send. */
  ready(stream: ServerStream): void;
  /** The handler consumed `bytes` of the request body; they are returned to the windows. */
  consumed(stream: ServerStream, bytes: number): void;
  /** Sends RST_STREAM. @param code one of `errorCodes` */
  reset(stream: ServerStream, code: number): void;
  /** The response was sent before the end of the request was received. */
  answered(stream: ServerStream): void;
  closed(stream: ServerStream): void;
}

/** Consumer of a request body. */
interface BodyReceiver {
  /** @param chunk a view that may be kept. Report it with {@link ServerStream.consumed} when it is processed. */
  data(chunk: Buffer): void;
  /** The whole body was received. */
  end(): void;
}

/** High-water mark of queued bytes; above it writers should await `drained`. */
const highWaterBytes = 64 * 1024;
const leastBytes = 512;
const gone = "the client disconnected";

/**
 * One request and its response. Queued data is held by reference and copied once, when the windows and the socket accept it: a
 * thousand slow watchers of one event share its bytes.
 */
export class ServerStream {
  readonly id: number;
  readonly head: RequestHead;
  /** name, value, name, value …, pseudo fields among them. */
  readonly fields: readonly string[];
  /** The field list exceeded the limit and is truncated here: the request is to be answered with 431. */
  readonly isCut: boolean;
  /** Called once, when the stream is closed. */
  onClosed: (() => void) | undefined;
  /** Whether the stream is in the output's queue. */
  isListed = false;
  /** Flow-control window for sending, in bytes. */
  sendWindow: number;
  /** Window of the request body; undefined without a body. */
  readonly receiveWindow: ReceiveWindow | undefined;
  /** END_STREAM was received. */
  received: boolean;
  /** END_STREAM was written to the socket. */
  sent = false;
  isClosed = false;
  readonly #connection: StreamConnection;
  #receiver: BodyReceiver | undefined;
  /** Body data that arrived before {@link receive} was called. */
  #early: GatheredBytes | undefined;
  #receivedBytes = 0;
  /** Received bytes that were not consumed yet. */
  #owed = 0;
  #headers: Buffer | undefined;
  #headersGiven = false;
  /** The response has no body: HEADERS carries END_STREAM. */
  #endsWithHeaders = false;
  #pieces: Buffer[] = [];
  #unsent = 0;
  #ended = false;
  #drained: PromiseWithResolvers<void> | undefined;

  constructor(
    connection: StreamConnection,
    request: { id: number; head: RequestHead; fields: readonly string[]; isWhole: boolean; isCut: boolean },
    windows: { send: number; receive: number },
  ) {
    this.#connection = connection;
    this.id = request.id;
    this.head = request.head;
    this.fields = request.fields;
    this.isCut = request.isCut;
    this.received = request.isWhole;
    this.sendWindow = windows.send;
    if (!request.isWhole) this.receiveWindow = new ReceiveWindow(windows.receive);
  }

  get headersGiven(): boolean {
    return this.#headersGiven;
  }

  /** The handler has ended the response; parts of it may still be queued. */
  get ended(): boolean {
    return this.#ended;
  }

  // Request

  /** Bytes of the body received so far. */
  get receivedBytes(): number {
    return this.#receivedBytes;
  }

  /**
   * Attaches the consumer of the body. Data that arrived already is delivered synchronously; nothing is delivered on a closed
   * stream.
   */
  receive(receiver: BodyReceiver): void {
    if (this.isClosed) return;
    this.#receiver = receiver;
    const early = this.#early?.take();
    this.#early = undefined;
    if (early !== undefined) receiver.data(early);
    if (this.received) this.#receiver.end();
  }

  /** Consumes and drops the body. */
  discard(): void {
    this.receive({ data: (chunk) => this.consumed(chunk.length), end() {} });
  }

  /** Reports processed bytes of the body, which reopens the windows. */
  consumed(bytes: number): void {
    if (this.isClosed) return;
    this.#owed -= bytes;
    this.#connection.consumed(this, bytes);
  }

  /** @returns false when the body exceeds `content-length` */
  onData(chunk: Buffer): boolean {
    this.#receivedBytes += chunk.length;
    this.#owed += chunk.length;
    if (this.#receivedBytes > (this.head.contentLength ?? Number.POSITIVE_INFINITY)) return false;
    if (this.#receiver !== undefined) this.#receiver.data(chunk);
    else {
      this.#early ??= new GatheredBytes();
      this.#early.push(chunk);
    }
    return true;
  }

  /** @returns false when the body is shorter than `content-length` */
  onRequestEnd(): boolean {
    if (this.#receivedBytes !== (this.head.contentLength ?? this.#receivedBytes)) return false;
    this.received = true;
    this.#receiver?.end();
    if (this.sent) this.close();
    return true;
  }

  // Response

  /**
   * @param framed the header block as frames
   * @param ends whether the response has no body
   */
  respond(framed: Buffer, ends: boolean): void {
    if (this.isClosed || this.#headersGiven) return;
    this.#headersGiven = true;
    this.#headers = framed;
    this.#endsWithHeaders = ends;
    this.#ended = ends;
    this.#connection.ready(this);
  }

  /** Sends an informational response, such as 100 Continue. */
  inform(framed: Buffer): void {
    if (this.isClosed || this.#headersGiven) return;
    this.#headers = this.#headers === undefined ? framed : Buffer.concat([this.#headers, framed]);
    this.#connection.ready(this);
  }

  /**
   * @param bytes owned by the stream from now on; must not be modified
   * @returns false when the caller should await {@link drained}
   */
  write(bytes: Buffer): boolean {
    if (this.isClosed || this.#ended) return false;
    if (bytes.length > 0) {
      this.#pieces.push(bytes);
      this.#unsent += bytes.length;
      this.#connection.ready(this);
    }
    return this.#unsent < highWaterBytes;
  }

  end(): void {
    if (this.isClosed || this.#ended) return;
    this.#ended = true;
    this.#connection.ready(this);
  }

  /** Resolves when the queue is below the high-water mark; rejects when the stream is closed. */
  drained(): Promise<void> {
    if (this.isClosed) return Promise.reject(new Error(gone));
    if (this.#unsent < highWaterBytes) return Promise.resolve();
    this.#drained ??= Promise.withResolvers();
    return this.#drained.promise;
  }

  reset(code: number): void {
    if (!this.isClosed) this.#connection.reset(this, code);
  }

  get unsent(): number {
    return this.#unsent;
  }

  get headerBytes(): number {
    return this.#headers?.length ?? 0;
  }

  /** @param window the connection's send window, in bytes */
  canSend(window: number): boolean {
    if (this.#headers !== undefined) return true;
    return this.#unsent > 0 ? this.sendWindow > 0 && window > 0 : this.#ended && !this.sent && !this.isClosed;
  }

  /** Bytes that can be sent now, including frame headers. */
  get sendable(): number {
    const data = Math.min(this.#unsent, Math.max(this.sendWindow, 0));
    const frames = 1 + Math.ceil(data / defaultMaxFrameBytes);
    const hasSome = data > 0 || (this.#ended && !this.#endsWithHeaders && !this.sent && this.#unsent === 0);
    return (this.#headers?.length ?? 0) + (hasSome ? data + frames * headBytes : 0);
  }

  /**
   * Writes frames to `slab` from `at` on.
   * @param most upper bound of data bytes
   * @returns the offset after the last byte written
   */
  fill(slab: Buffer, at: number, most: number): number {
    if (this.#headers !== undefined) {
      if (slab.length - at < this.#headers.length) return at;
      this.#headers.copy(slab, at);
      at += this.#headers.length;
      this.#headers = undefined;
      if (this.#endsWithHeaders) this.sent = true;
      if (!this.#headersGiven) return at;
    }
    while (this.#unsent > 0) {
      const room = slab.length - at - headBytes;
      const length = Math.min(this.#unsent, defaultMaxFrameBytes, room, this.sendWindow, most);
      // A tiny frame at the end of the slab would be more header than data.
      if (length <= 0 || (length === room && length < Math.min(this.#unsent, leastBytes))) return at;
      const isLast = this.#ended && length === this.#unsent;
      writeHead(slab, at, length, frameTypes.data, isLast ? flags.endStream : 0, this.id);
      takePieces(this.#pieces, slab, at + headBytes, length);
      this.#unsent -= length;
      at += headBytes + length;
      most -= length;
      this.sendWindow -= length;
      if (isLast) this.sent = true;
    }
    if (this.#ended && !this.sent && !this.isClosed && slab.length - at >= headBytes) {
      writeHead(slab, at, 0, frameTypes.data, flags.endStream, this.id);
      at += headBytes;
      this.sent = true;
    }
    return at;
  }

  /** Called after {@link fill} when nothing more can be sent: resolves `drained`, and closes the stream when it is complete. */
  settle(): void {
    if (this.#unsent < highWaterBytes) {
      this.#drained?.resolve();
      this.#drained = undefined;
    }
    if (!this.sent || this.isClosed) return;
    if (this.received) this.close();
    else this.#connection.answered(this);
  }

  /** Closes the stream after its regular end or a reset. Idempotent. */
  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.#headers = undefined;
    this.#early = undefined;
    this.#pieces = [];
    this.#unsent = 0;
    if (this.#owed > 0) this.#connection.consumed(this, this.#owed);
    this.#drained?.reject(new Error(gone));
    this.#drained = undefined;
    this.#connection.closed(this);
    this.onClosed?.();
  }
}
