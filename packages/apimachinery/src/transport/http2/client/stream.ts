import type { Duplex } from "node:stream";
import { ReceiveWindow } from "../wire/buffers.ts";
import { errorCodes, protocolError, windowError } from "../wire/connection-error.ts";
import {
  defaultMaxFrameBytes,
  defaultWindowBytes,
  flags,
  frame,
  framedBlock,
  frameTypes,
  headBytes,
  numberFrame,
  widestWindow,
  writeHead,
} from "../wire/frames.ts";

/** Header fields by name; names are unique. */
export type Fields = ReadonlyMap<string, string>;

export interface StreamHandlers {
  /** Called for headers and for trailers; not for informational responses. */
  fields(fields: Fields): void;
  /** @param bytes a view on memory that is not reused; may be kept */
  data(bytes: Buffer): void;
  /** The last call, exactly once. */
  closed(end: StreamEnd): void;
  /** Received bytes are returned to the stream's window by {@link ClientStream.consumed}; otherwise when they arrive. */
  readonly isPaced?: boolean;
}

/**
 * `ended`: the response is complete. `refused`: the server did not process the request. `lost`: it may have; `code` is that of
 * the server's RST_STREAM.
 */
export type StreamEnd =
  | { readonly type: "ended" }
  | { readonly type: "refused" | "lost"; readonly reason: string; readonly code?: number };

/** The connection of a stream. */
export interface StreamConnection {
  readonly output: ClientOutput;
  /** The stream was closed by this side. */
  cancelled(stream: ClientStream): void;
}

const noBytes = Buffer.alloc(0);
const inOrder: StreamEnd = { type: "ended" };

/** A request and its response. Opened by its connection as soon as the server's limit of streams allows it. */
export class ClientStream {
  /** 0 until it is opened. */
  id = 0;
  isOver = false;
  readonly #connection: StreamConnection;
  readonly #handlers: StreamHandlers;
  #block: Buffer;
  /** Data that flow control holds back. */
  #unsent: Buffer[];
  /** No data follows `#unsent`. */
  #ended: boolean;
  #endSent = false;
  #sendWindow = 0;
  readonly #receiveWindow: ReceiveWindow;
  #hasFields = false;
  #onSent: (() => void) | undefined;

  /**
   * @param block the encoded header fields
   * @param ends whether `body` is the whole request
   */
  constructor(
    connection: StreamConnection,
    request: { readonly block: Buffer; readonly body: Buffer; readonly ends: boolean },
    handlers: StreamHandlers,
    windowBytes: number,
  ) {
    this.#connection = connection;
    this.#handlers = handlers;
    this.#block = request.block;
    this.#unsent = request.body.length > 0 ? [request.body] : [];
    this.#ended = request.ends;
    this.#receiveWindow = new ReceiveWindow(windowBytes);
  }

  // Operations of the caller

  /** @param sent called when flow control has admitted all data, or the stream is over */
  write(body: Buffer, sent?: () => void): void {
    if (this.isOver || this.#ended) {
      sent?.();
      return;
    }
    this.#unsent.push(body);
    this.#onSent = both(this.#onSent, sent);
    if (this.id !== 0) this.pump();
  }

  /** Ends the request; the response continues. */
  end(): void {
    if (this.isOver || this.#ended) return;
    this.#ended = true;
    if (this.id === 0) return;
    if (this.#unsent.length === 0) this.#unsent.push(noBytes);
    this.pump();
  }

  /** Returns `bytes` of an {@link StreamHandlers.isPaced} stream to its window. */
  consumed(bytes: number): void {
    if (this.isOver) return;
    const grown = this.#receiveWindow.giveBack(bytes);
    if (grown > 0) this.#output.send(numberFrame(frameTypes.windowUpdate, this.id, grown));
  }

  /** Resets the stream; no handler is called afterwards. */
  cancel(): void {
    if (this.isOver) return;
    this.#close();
    if (this.id !== 0) this.#output.send(numberFrame(frameTypes.resetStream, this.id, errorCodes.cancel));
    this.#connection.cancelled(this);
  }

  // Operations of the connection

  /** Sends the header fields, and as much of the data as the flow-control windows allow. */
  open(id: number): void {
    const output = this.#output;
    this.id = id;
    this.#sendWindow = output.streamWindow;
    const block = this.#block;
    this.#block = noBytes;
    const first = this.#unsent[0];
    if (first === undefined) {
      this.#endSent = this.#ended;
      output.send(framedBlock(id, block, this.#ended));
      return;
    }
    const length = first.length;
    const isWhole = this.#ended && this.#unsent.length === 1;
    if (isWhole && block.length <= output.frameBytes && length <= this.#sendable) {
      // The common case, a small and complete request: both frames in one buffer.
      const bytes = Buffer.allocUnsafe(2 * headBytes + block.length + length);
      writeHead(bytes, 0, block.length, frameTypes.headers, flags.endHeaders, id);
      block.copy(bytes, headBytes);
      const at = headBytes + block.length;
      writeHead(bytes, at, length, frameTypes.data, flags.endStream, id);
      first.copy(bytes, at + headBytes);
      this.#unsent = [];
      this.#endSent = true;
      output.window -= length;
      output.send(bytes);
      return;
    }
    output.send(framedBlock(id, block, false));
    this.pump();
  }

  /** Sends as much of the data as the flow-control windows allow. */
  pump(): void {
    const output = this.#output;
    for (let next = this.#unsent[0]; next !== undefined && !this.isOver; next = this.#unsent[0]) {
      const length = Math.min(next.length, this.#sendable);
      if (length <= 0 && next.length > 0) return;
      if (length === next.length) this.#unsent.shift();
      else this.#unsent[0] = next.subarray(length);
      const isLast = this.#ended && this.#unsent.length === 0;
      if (isLast) this.#endSent = true;
      this.#sendWindow -= length;
      output.window -= length;
      output.send(frame(frameTypes.data, isLast ? flags.endStream : 0, this.id, next.subarray(0, length)));
    }
    this.#settleSent();
  }

  /** @param change of the send window, in bytes; negative when the server reduces its initial window */
  resize(change: number): number {
    this.#sendWindow += change;
    return this.#sendWindow;
  }

  onFields(fields: Fields): void {
    if (fields.get(":status")?.startsWith("1") === true) return;
    this.#hasFields = true;
    this.#handlers.fields(fields);
  }

  /** @returns the code of the error by which the server violates the protocol; undefined without one */
  onData(data: Buffer, windowBytes: number, ends: boolean): number | undefined {
    if (!this.#hasFields) return errorCodes.protocol;
    if (!this.#receiveWindow.take(windowBytes)) return errorCodes.flowControl;
    const consumed = this.#handlers.isPaced === true ? windowBytes - data.length : windowBytes;
    if (!ends && consumed > 0) this.consumed(consumed);
    if (data.length > 0) this.#handlers.data(data);
    return undefined;
  }

  /** The response is complete. */
  onEnd(): void {
    if (!this.#endSent) this.#output.send(numberFrame(frameTypes.resetStream, this.id, errorCodes.cancel));
    this.finish(inOrder);
  }

  finish(end: StreamEnd): void {
    if (this.isOver) return;
    this.#close();
    this.#handlers.closed(end);
  }

  get #output(): ClientOutput {
    return this.#connection.output;
  }

  get #sendable(): number {
    const { frameBytes, window } = this.#output;
    return Math.min(frameBytes, this.#sendWindow, window);
  }

  #close(): void {
    this.isOver = true;
    this.#unsent = [];
    this.#settleSent();
  }

  #settleSent(): void {
    const sent = this.#onSent;
    this.#onSent = undefined;
    sent?.();
  }
}

function both(first: (() => void) | undefined, second: (() => void) | undefined): (() => void) | undefined {
  if (first === undefined || second === undefined) return first ?? second;
  return () => {
    first();
    second();
  };
}

/** How long a ping reply waits to be sent with the next request. Servers allow several seconds, and a separate write wakes both sides. */
const pongDelayMs = 1_000;
/** With this many pending replies they are sent immediately. */
const mostPongs = 16;
const largestFrameBytes = 2 ** 24 - 1;

/**
 * Output of a client connection: the frames of one event-loop turn go out in one write. Also holds what the server allows: the
 * connection's flow-control window, the initial window of streams and the size of frames.
 */
export class ClientOutput {
  readonly #socket: Duplex;
  #frames: Buffer[] = [];
  readonly #pongs: Buffer[] = [];
  #pongTimer: NodeJS.Timeout | undefined;
  /** The connection's send window, in bytes. */
  window = defaultWindowBytes;
  /** SETTINGS_INITIAL_WINDOW_SIZE of the server. */
  #streamWindow = defaultWindowBytes;
  /** SETTINGS_MAX_FRAME_SIZE of the server. */
  #frameBytes = defaultMaxFrameBytes;

  constructor(socket: Duplex) {
    this.#socket = socket;
  }

  get streamWindow(): number {
    return this.#streamWindow;
  }

  get frameBytes(): number {
    return this.#frameBytes;
  }

  /** @throws ConnectionError for a size that RFC 9113, section 6.5.2, forbids */
  set frameBytes(bytes: number) {
    if (bytes < defaultMaxFrameBytes || bytes > largestFrameBytes)
      throw protocolError(`invalid SETTINGS_MAX_FRAME_SIZE ${bytes}`);
    this.#frameBytes = bytes;
  }

  /** Applies a WINDOW_UPDATE of the connection. @returns whether streams may have waited for it @throws ConnectionError */
  widen(increment: number): boolean {
    if (increment === 0) throw protocolError("WINDOW_UPDATE with increment 0");
    const wasShut = this.window <= 0;
    this.window += increment;
    if (this.window > widestWindow) throw windowError("flow-control window above 2^31-1");
    return wasShut;
  }

  /** Applies SETTINGS_INITIAL_WINDOW_SIZE. @returns the change for the windows of open streams @throws ConnectionError */
  resizeStreams(bytes: number): number {
    if (bytes > widestWindow) throw windowError("flow-control window above 2^31-1");
    const change = bytes - this.#streamWindow;
    this.#streamWindow = bytes;
    return change;
  }

  /** Queues frames for the write at the end of this turn. process.nextTick would run after each request parsed from one chunk. */
  send(frames: Buffer): void {
    if (this.#frames.push(frames) === 1) setImmediate(this.flush);
  }

  /**
   * Acknowledges a PING. etcd pings with each request to estimate the bandwidth-delay product. The replies are sent with the next
   * request: a separate write wakes etcd, which delays the events on their way to watchers.
   */
  pong(payload: Buffer): void {
    const pending = this.#pongs.push(frame(frameTypes.ping, flags.ack, 0, payload));
    if (pending === 1) this.#pongTimer = setTimeout(this.flush, pongDelayMs).unref();
    else if (pending === mostPongs) setImmediate(this.flush);
  }

  readonly flush = (): void => {
    if (this.#pongs.length > 0) {
      this.#frames.push(...this.#pongs.splice(0));
      clearTimeout(this.#pongTimer);
    }
    const frames = this.#frames;
    if (frames.length === 0) return;
    this.#frames = [];
    if (!this.#socket.destroyed) this.#socket.write(frames.length === 1 ? frames[0]! : Buffer.concat(frames));
  };

  /** Must be called when the connection is closed. */
  close(): void {
    clearTimeout(this.#pongTimer);
  }
}
