import { defaultMaxFrameBytes, flags, frameTypes, headBytes, writeHead } from "./frames.ts";
import { GatheredBytes } from "./gathered-bytes.ts";
import { takePieces } from "./pieces.ts";
import { ReceiveWindow } from "./receive-window.ts";
import type { RequestHead } from "./request-head.ts";

/** What a stream asks of its connection. */
export interface StreamConnection {
  /** It has something to send. */
  ready(stream: ServerStream): void;
  /** So many bytes of its body are worked off, and may come anew. */
  consumed(stream: ServerStream, bytes: number): void;
  /** Says that it is over, with one of `errorCodes`. */
  reset(stream: ServerStream, code: number): void;
  /** The answer is out, and the request has not come to its end. */
  answered(stream: ServerStream): void;
  closed(stream: ServerStream): void;
}

/** Who wants the body of a request. */
export interface BodyReceiver {
  /** @param chunk a view that lives as long as it is held. It is to be {@link ServerStream.consumed}. */
  data(chunk: Buffer): void;
  /** The body is whole. */
  end(): void;
}

/** Beyond so many bytes that wait, who writes more should await `drained`. */
const highWaterBytes = 64 * 1024;
const leastBytes = 512;
const gone = "the client went away";

/**
 * One request and its answer. What is sent waits here as references: it is copied once, when the windows and the socket take it,
 * so that a thousand slow watchers of one event hold one event.
 */
export class ServerStream {
  readonly id: number;
  readonly head: RequestHead;
  /** name, value, name, value …, pseudo fields among them. */
  readonly fields: readonly string[];
  /** There were more fields than a request may have, which are missing here: to be answered 431. */
  readonly isCut: boolean;
  /** Called once, when nothing more comes or goes. */
  onClosed: (() => void) | undefined;
  /** In the connection's list of those that have something to send. */
  isListed = false;
  /** How many bytes the client takes. */
  sendWindow: number;
  /** Of the request's body; undefined where it has none. */
  readonly receiveWindow: ReceiveWindow | undefined;
  /** The request is whole. */
  received: boolean;
  /** The last byte of the answer has been handed to the socket. */
  sent = false;
  isClosed = false;
  readonly #connection: StreamConnection;
  #receiver: BodyReceiver | undefined;
  /** What came before anybody wanted it. */
  #early: GatheredBytes | undefined;
  #receivedBytes = 0;
  /** Received, and not worked off. */
  #owed = 0;
  #headers: Buffer | undefined;
  #headersGiven = false;
  /** The headers are all of the answer. */
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

  /** The answer is whole, though the client may not have taken it. */
  get ended(): boolean {
    return this.#ended;
  }

  // The request

  /** @param receiver is given what has come already, at once; nothing when the stream is closed */
  receive(receiver: BodyReceiver): void {
    if (this.isClosed) return;
    this.#receiver = receiver;
    const early = this.#early?.take();
    this.#early = undefined;
    if (early !== undefined) receiver.data(early);
    if (this.received) this.#receiver.end();
  }

  /** From now on the body is thrown away. */
  discard(): void {
    this.receive({ data: (chunk) => this.consumed(chunk.length), end() {} });
  }

  consumed(bytes: number): void {
    if (this.isClosed) return;
    this.#owed -= bytes;
    this.#connection.consumed(this, bytes);
  }

  /** @returns false when it is more than was announced */
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

  /** @returns false when it is less than was announced */
  onRequestEnd(): boolean {
    if (this.#receivedBytes !== (this.head.contentLength ?? this.#receivedBytes)) return false;
    this.received = true;
    this.#receiver?.end();
    if (this.sent) this.close();
    return true;
  }

  // The answer

  /** @param framed the fields of the answer, in frames @param ends whether they are all of it */
  respond(framed: Buffer, ends: boolean): void {
    if (this.isClosed || this.#headersGiven) return;
    this.#headersGiven = true;
    this.#headers = framed;
    this.#endsWithHeaders = ends;
    this.#ended = ends;
    this.#connection.ready(this);
  }

  /** Fields before those of the answer: 100 Continue. */
  inform(framed: Buffer): void {
    if (this.isClosed || this.#headersGiven) return;
    this.#headers = this.#headers === undefined ? framed : Buffer.concat([this.#headers, framed]);
    this.#connection.ready(this);
  }

  /** @param bytes not to be changed any more @returns false when enough waits */
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

  /** Resolves when there is room; rejects when the client is gone. */
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

  /** @param window bytes of data that the connection lets out */
  canSend(window: number): boolean {
    if (this.#headers !== undefined) return true;
    return this.#unsent > 0 ? this.sendWindow > 0 && window > 0 : this.#ended && !this.sent && !this.isClosed;
  }

  /** Bytes that could go out now, frames' heads included. */
  get sendable(): number {
    const data = Math.min(this.#unsent, Math.max(this.sendWindow, 0));
    const frames = 1 + Math.ceil(data / defaultMaxFrameBytes);
    const hasSome = data > 0 || (this.#ended && !this.#endsWithHeaders && !this.sent && this.#unsent === 0);
    return (this.#headers?.length ?? 0) + (hasSome ? data + frames * headBytes : 0);
  }

  /**
   * Writes frames to `slab` from `at` on.
   * @param most bytes of data
   * @returns where it came to
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
      // A frame that only fills up the slab is more head than data.
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

  /** After it was filled from. */
  settle(): void {
    if (this.#unsent < highWaterBytes) {
      this.#drained?.resolve();
      this.#drained = undefined;
    }
    if (!this.sent || this.isClosed) return;
    if (this.received) this.close();
    else this.#connection.answered(this);
  }

  /** It has come to its end, or one of the sides has broken it off. */
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
