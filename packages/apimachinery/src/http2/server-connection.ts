import type { Duplex } from "node:stream";
import { TransientMap } from "../meta/transient-map.ts";
import type { ConnectionBudget } from "./client-budgets.ts";
import { ClientConduct } from "./client-conduct.ts";
import { codeOf, errorCodes, protocolError, tooMuch, windowError } from "./connection-error.ts";
import {
  defaultMaxFrameBytes,
  defaultWindowBytes,
  flags,
  frame,
  frameTypes,
  numberFrame,
  settings,
  settingsFrame,
  widestWindow,
} from "./frames.ts";
import type { DecodedFields } from "./hpack-decoder.ts";
import { ReceiveWindow } from "./receive-window.ts";
import { areTrailers, requestHeadOf } from "./request-head.ts";
import { type FrameReceiver, ServerInput } from "./server-input.ts";
import { ServerOutput } from "./server-output.ts";
import { ServerStream, type StreamConnection } from "./server-stream.ts";

export interface ServerConnectionOptions {
  /** Requests at a time. */
  readonly maxConcurrentStreams: number;
  /** Of one request, as RFC 9113 counts it (6.5.2). */
  readonly maxHeaderBytes: number;
  /** For the preface, for headers to come to their end, and for the client to take the goodbye. */
  readonly headersTimeoutMs: number;
  /** Without a request. */
  readonly idleTimeoutMs: number;
  /** What it shares with the client's other connections; undefined: nothing. */
  readonly client?: ConnectionBudget | undefined;
}

export interface ServerConnectionEvents {
  /**
   * A request has begun; one with too many header fields, too ({@link ServerStream.isCut}). Who serves it says
   * {@link ServerConnection.handled} when nobody works on it any more.
   */
  request(stream: ServerStream): void;
  /** Last, once. @param reason undefined when it ended in order */
  closed(reason: string | undefined): void;
}

const streamWindowBytes = 256 * 1024;
const connectionWindowBytes = 4 * 1024 * 1024;
const lastStreamId = 2 ** 31 - 1;
const largestFrameBytes = 2 ** 24 - 1;
/** How long a client may take to hear that it should leave, or that a stream is over. */
const graceMs = 1_000;
/** Replies that wait for a client that does not read. */
const mostReplies = 1_000;
const noBytes = Buffer.alloc(0);

/**
 * The server's side of one HTTP/2 connection. Node's own makes a stream with its two buffers and a dozen events for each request,
 * and a kilobyte of garbage for each event that a watch sends.
 * Source: RFC 9113
 */
export class ServerConnection implements StreamConnection, FrameReceiver {
  readonly #socket: Duplex;
  readonly #options: ServerConnectionOptions;
  readonly #events: ServerConnectionEvents;
  readonly #input: ServerInput;
  readonly #output: ServerOutput;
  readonly #conduct: ClientConduct;
  readonly #streams = new TransientMap<number, ServerStream>();
  #lastId = 0;
  /** Requests that somebody works on, also those that the client has broken off. */
  #handled = 0;
  readonly #receiveWindow = new ReceiveWindow(connectionWindowBytes);
  /** "told": that it should; "refusing": what it asks for nevertheless. */
  #leaving: "no" | "told" | "refusing" = "no";
  /** When the goodbye was said after which only the end comes. */
  #closingSince: number | undefined;
  #isClosed = false;
  #failure: string | undefined;
  #idleSince = performance.now();

  constructor(socket: Duplex, options: ServerConnectionOptions, events: ServerConnectionEvents) {
    this.#socket = socket;
    this.#options = options;
    this.#events = events;
    this.#conduct = new ClientConduct(options.client);
    this.#input = new ServerInput(this, options.maxHeaderBytes);
    this.#output = new ServerOutput(socket, () => this.#endIfDone());
    socket.on("data", (chunk: Buffer) => this.#onChunk(chunk));
    socket.on("error", (err) => {
      this.#failure ??= err.message;
    });
    socket.once("close", () => this.#onClose());
    this.#output.control(
      settingsFrame([
        [settings.maxConcurrentStreams, options.maxConcurrentStreams],
        [settings.initialWindowSize, streamWindowBytes],
        [settings.maxHeaderListSize, options.maxHeaderBytes],
      ]),
    );
    this.#output.control(numberFrame(frameTypes.windowUpdate, 0, connectionWindowBytes - defaultWindowBytes));
  }

  /** Streams that are open. */
  get size(): number {
    return this.#streams.size;
  }

  // What the server does

  /** Nobody works on one of the requests any more. */
  handled(): void {
    this.#handled--;
  }

  /** Two steps: tells the client first, and refuses new streams only after it had time to hear. */
  leave(): void {
    if (this.#leaving !== "no" || this.#isClosed) return;
    this.#leaving = "told";
    this.#goAway(lastStreamId, errorCodes.none);
    setTimeout(() => this.close(), graceMs).unref();
  }

  /** Takes no more requests, and ends when those that run have come to their end. */
  close(): void {
    if (this.#leaving === "refusing" || this.#isClosed) return;
    this.#leaving = "refusing";
    this.#goAway(this.#lastId, errorCodes.none);
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** Ends it when the client has exceeded its times. To be called now and then. */
  check(now: number): void {
    const { headersTimeoutMs, idleTimeoutMs } = this.#options;
    const awaited = this.#input.hasBegun ? (this.#closingSince ?? this.#input.headersSince) : this.#idleSince;
    if (awaited !== undefined && now - awaited >= headersTimeoutMs) {
      this.#failure ??= "the client took too long";
      this.destroy();
    } else if (this.#streams.size === 0 && now - this.#idleSince >= idleTimeoutMs) {
      this.close();
      this.#onlyEnd();
    }
  }

  // What streams ask for

  ready(stream: ServerStream): void {
    this.#output.ready(stream);
  }

  consumed(stream: ServerStream, bytes: number): void {
    this.#giveBack(bytes);
    if (stream.isClosed || stream.received) return;
    this.#tellGrown(stream.id, stream.receiveWindow?.giveBack(bytes) ?? 0);
  }

  reset(stream: ServerStream, code: number): void {
    this.#conduct.weReset(stream.id);
    this.#output.control(numberFrame(frameTypes.resetStream, stream.id, code));
    stream.close();
  }

  /**
   * What is left of a request that was answered early is not wanted (RFC 9113, 8.1). Not at once: a reset can overtake the
   * answer in clients, node's among them.
   */
  answered(stream: ServerStream): void {
    stream.discard();
    setTimeout(() => stream.reset(errorCodes.none), graceMs).unref();
  }

  closed(stream: ServerStream): void {
    this.#streams.delete(stream.id);
    if (this.#streams.size > 0) return;
    this.#idleSince = performance.now();
    this.#endIfDone();
  }

  // What the client sends

  #onChunk(chunk: Buffer): void {
    try {
      this.#input.take(chunk);
    } catch (err) {
      this.#fail(codeOf(err), (err as Error).message);
    }
  }

  onHeaders(id: number, isWhole: boolean, decoded: DecodedFields): void {
    const stream = this.#streams.get(id);
    if (stream !== undefined) {
      if (stream.received) this.#resetFor(stream, errorCodes.streamClosed);
      else if (!isWhole || decoded.tooLarge || !areTrailers(decoded.fields)) this.#resetFor(stream, errorCodes.protocol);
      else this.#endOfRequest(stream);
      return;
    }
    if (id <= this.#lastId) {
      this.#conduct.checkLate(id);
      this.#conduct.countIdle();
      return;
    }
    this.#lastId = id;
    if (this.#leaving === "refusing" || this.#isFull) this.#refuse(id, errorCodes.refusedStream);
    else this.#open(id, isWhole, decoded);
  }

  /** A client that breaks off what it asked for does not thereby get more done at a time. */
  get #isFull(): boolean {
    const { maxConcurrentStreams } = this.#options;
    return this.#streams.size >= maxConcurrentStreams || this.#handled >= 2 * maxConcurrentStreams;
  }

  #open(id: number, isWhole: boolean, { fields, tooLarge }: DecodedFields): void {
    const head = requestHeadOf(fields);
    if (head === undefined || (isWhole && (head.contentLength ?? 0) > 0)) {
      this.#refuse(id, errorCodes.protocol);
      return;
    }
    const windows = { send: this.#output.streamWindow, receive: streamWindowBytes };
    const stream = new ServerStream(this, { id, head, fields, isWhole, isCut: tooLarge }, windows);
    this.#streams.set(id, stream);
    this.#handled++;
    this.#events.request(stream);
  }

  #refuse(id: number, code: number): void {
    this.#conduct.countIdle();
    this.#conduct.weReset(id);
    this.#reply(numberFrame(frameTypes.resetStream, id, code));
  }

  onData(id: number, data: Buffer, windowBytes: number, ends: boolean): void {
    if (this.#isIdle(id)) throw protocolError("data of a stream that did not begin");
    if (!this.#receiveWindow.take(windowBytes)) throw windowError("more data than the window lets in");
    const stream = this.#streams.get(id);
    if (data.length === 0 && (!ends || stream === undefined)) this.#conduct.countIdle();
    if (stream === undefined) {
      this.#conduct.checkLate(id);
      this.#giveBack(windowBytes);
      return;
    }
    if (stream.received || stream.receiveWindow?.take(windowBytes) === false) {
      this.#giveBack(windowBytes);
      this.#resetFor(stream, stream.received ? errorCodes.streamClosed : errorCodes.flowControl);
      return;
    }
    // Nobody is to work off what only fills up the frame.
    if (data.length < windowBytes) this.consumed(stream, windowBytes - data.length);
    if (data.length > 0 && !stream.onData(data)) this.#resetFor(stream, errorCodes.protocol);
    else if (ends) this.#endOfRequest(stream);
  }

  #endOfRequest(stream: ServerStream): void {
    if (!stream.onRequestEnd()) this.#resetFor(stream, errorCodes.protocol);
  }

  /** A mistake of the client: as cheap a way to have work begun and thrown away as to break it off itself (CVE-2025-8671). */
  #resetFor(stream: ServerStream, code: number): void {
    this.#conduct.countReset();
    this.reset(stream, code);
  }

  onReset(id: number): void {
    if (this.#isIdle(id)) throw protocolError("the end of a stream that did not begin");
    const stream = this.#streams.get(id);
    if (stream === undefined) {
      this.#conduct.countIdle();
      return;
    }
    this.#conduct.countReset();
    stream.close();
  }

  onSetting(id: number, value: number): void {
    switch (id) {
      case settings.enablePush:
        if (value > 1) throw protocolError("push is neither on nor off");
        break;
      case settings.maxFrameSize:
        if (value < defaultMaxFrameBytes || value > largestFrameBytes) throw protocolError(`frames of ${value} bytes`);
        break;
      case settings.initialWindowSize:
        this.#output.resizeStreams(value, this.#streams.values());
    }
  }

  onSettings(): void {
    this.#reply(frame(frameTypes.settings, flags.ack, 0, noBytes));
  }

  onPing(payload: Buffer): void {
    this.#reply(frame(frameTypes.ping, flags.ack, 0, payload));
  }

  onGoAway(): void {
    this.close();
  }

  onIdleFrame(): void {
    this.#conduct.countIdle();
  }

  onStalledHeaders(): void {
    this.#fail(errorCodes.enhanceYourCalm, "too many headers are unfinished, its own for longest");
  }

  onWindowUpdate(id: number, increment: number): void {
    if (id === 0) {
      this.#output.widen(increment, () => this.#streams.values());
      return;
    }
    if (this.#isIdle(id)) throw protocolError("the window of a stream that did not begin");
    const stream = this.#streams.get(id);
    if (stream === undefined) return;
    stream.sendWindow += increment;
    if (increment === 0) this.#resetFor(stream, errorCodes.protocol);
    else if (stream.sendWindow > widestWindow) this.#resetFor(stream, errorCodes.flowControl);
    else if (stream.unsent > 0) this.#output.ready(stream);
  }

  // What the connection does by itself

  #isIdle(id: number): boolean {
    return id > this.#lastId || id % 2 === 0;
  }

  #reply(bytes: Buffer): void {
    if (this.#output.waiting >= mostReplies) throw tooMuch("the client does not take its answers");
    this.#output.control(bytes);
  }

  /** To the connection's window. */
  #giveBack(bytes: number): void {
    this.#tellGrown(0, this.#receiveWindow.giveBack(bytes));
  }

  #tellGrown(id: number, bytes: number): void {
    if (bytes > 0) this.#output.control(numberFrame(frameTypes.windowUpdate, id, bytes));
  }

  #goAway(last: number, code: number): void {
    const payload = Buffer.allocUnsafe(8);
    payload.writeUInt32BE(last, 0);
    payload.writeUInt32BE(code, 4);
    this.#output.control(frame(frameTypes.goAway, 0, 0, payload));
  }

  /** Ends a connection of a client that has to wait before it is served again. */
  refuse(): void {
    this.#fail(errorCodes.enhanceYourCalm, "the client did too much that is broken off");
    this.#endIfDone();
  }

  #fail(code: number, reason: string): void {
    if (code === errorCodes.enhanceYourCalm) this.#options.client?.ended();
    this.#failure ??= reason;
    this.#onlyEnd();
    this.#goAway(this.#lastId, code);
    for (const stream of this.#streams.values()) stream.close();
  }

  /** The goodbye was said: whatever comes is not looked at. */
  #onlyEnd(): void {
    this.#closingSince ??= performance.now();
    this.#input.close();
  }

  /** When nothing is under way any more: ends, after what is still to be said. */
  #endIfDone(): void {
    const isLast = this.#closingSince !== undefined || this.#leaving === "refusing";
    if (this.#isClosed || this.#streams.size > 0 || !isLast) return;
    this.#onlyEnd();
    if (this.#output.isIdle) this.#socket.end();
  }

  #onClose(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#input.close();
    for (const stream of this.#streams.values()) stream.close();
    this.#events.closed(this.#failure);
  }
}
