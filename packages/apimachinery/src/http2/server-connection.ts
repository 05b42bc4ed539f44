import type { Duplex } from "node:stream";
import { TransientMap } from "../meta/transient-map.ts";
import { Budget } from "./budget.ts";
import { ConnectionError, codeOf, errorCodes, frameSizeError, protocolError, tooMuch, windowError } from "./connection-error.ts";
import { checkFrame } from "./frame-rules.ts";
import { framedFields } from "./framed-fields.ts";
import {
  defaultMaxFrameBytes,
  defaultWindowBytes,
  flags,
  frame,
  frameTypes,
  newFrameReader,
  numberFrame,
  preface,
  settings,
  settingsFrame,
  unpadded,
  widestWindow,
} from "./frames.ts";
import { HeaderBlock } from "./header-block.ts";
import { type FieldsDecoder, newFieldsDecoder } from "./hpack-decoder.ts";
import { ReceiveWindow } from "./receive-window.ts";
import { areTrailers, type RequestHead, requestHeadOf } from "./request-head.ts";
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
}

export interface ServerConnectionEvents {
  /** A request has begun. Who serves it says {@link ServerConnection.handled} when nobody works on it any more. */
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
/** Streams that a client breaks off. Source: nghttp2's after CVE-2023-44487 */
const resetBudget = { most: 1_000, perSecond: 33 };
/** Frames that bring nothing forward. */
const idleBudget = { most: 1_000, perSecond: 100 };
/** Of streams that we have reset: what was on its way to them is no mistake. */
const mostRemembered = 250;
const noBytes = Buffer.alloc(0);

/**
 * The server's side of one HTTP/2 connection. Node's own makes a stream with its two buffers and a dozen events for each request,
 * and a kilobyte of garbage for each event that a watch sends.
 * Source: RFC 9113
 */
export class ServerConnection implements StreamConnection {
  readonly #socket: Duplex;
  readonly #options: ServerConnectionOptions;
  readonly #events: ServerConnectionEvents;
  readonly #output: ServerOutput;
  readonly #streams = new TransientMap<number, ServerStream>();
  readonly #decoder: FieldsDecoder;
  readonly #read: (chunk: Buffer) => void;
  /** What has not come of it yet. */
  #prefaceLeft = preface;
  #hasSettings = false;
  #lastId = 0;
  /** Requests that somebody works on, also those that the client has broken off. */
  #handled = 0;
  readonly #receiveWindow = new ReceiveWindow(connectionWindowBytes);
  /** Headers that go on in the next frame. */
  #block: HeaderBlock | undefined;
  /** "told": that it should; "refusing": what it asks for nevertheless. */
  #leaving: "no" | "told" | "refusing" = "no";
  /** When the goodbye was said after which only the end comes. */
  #closingSince: number | undefined;
  #isClosed = false;
  #failure: string | undefined;
  /** Of streams that we have reset, the last ones. */
  readonly #reset: number[] = [];
  readonly #resets = new Budget(resetBudget);
  readonly #idleFrames = new Budget(idleBudget);
  #idleSince = performance.now();

  constructor(socket: Duplex, options: ServerConnectionOptions, events: ServerConnectionEvents) {
    this.#socket = socket;
    this.#options = options;
    this.#events = events;
    this.#output = new ServerOutput(socket, () => this.#endIfDone());
    this.#decoder = newFieldsDecoder({ mostListBytes: options.maxHeaderBytes });
    this.#read = newFrameReader((type, flag, id, payload) => this.#onFrame(type, flag, id, payload));
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
    const awaited = this.#hasSettings ? (this.#closingSince ?? this.#block?.since) : this.#idleSince;
    if (awaited !== undefined && now - awaited >= headersTimeoutMs) {
      this.#failure ??= "the client took too long";
      this.destroy();
    } else if (this.#streams.size === 0 && now - this.#idleSince >= idleTimeoutMs) {
      this.close();
      this.#closingSince ??= now;
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
    this.#rememberReset(stream.id);
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
      const rest = this.#prefaceLeft.length === 0 ? chunk : this.#afterPreface(chunk);
      if (rest.length > 0 && this.#closingSince === undefined) this.#read(rest);
    } catch (err) {
      this.#fail(codeOf(err), (err as Error).message);
    }
  }

  #afterPreface(chunk: Buffer): Buffer {
    const length = Math.min(chunk.length, this.#prefaceLeft.length);
    if (chunk.compare(this.#prefaceLeft, 0, length, 0, length) !== 0) throw protocolError("the preface is wrong");
    this.#prefaceLeft = this.#prefaceLeft.subarray(length);
    return chunk.subarray(length);
  }

  #onFrame(type: number, flag: number, id: number, payload: Buffer): void {
    if (this.#closingSince !== undefined) return;
    if (this.#block !== undefined && (type !== frameTypes.continuation || id !== this.#block.stream)) {
      throw protocolError("a frame within headers");
    }
    if (!this.#hasSettings && type !== frameTypes.settings) throw protocolError("no settings come first");
    checkFrame(type, id, payload.length);
    switch (type) {
      case frameTypes.data:
        this.#onData(id, flag, payload);
        break;
      case frameTypes.headers:
        this.#onHeaders(id, flag, payload);
        break;
      case frameTypes.continuation:
        this.#onContinuation(flag, payload);
        break;
      case frameTypes.resetStream:
        this.#onReset(id);
        break;
      case frameTypes.settings:
        this.#onSettings(flag, payload);
        break;
      case frameTypes.ping:
        this.#countIdle();
        if ((flag & flags.ack) === 0) this.#reply(frame(frameTypes.ping, flags.ack, 0, payload));
        break;
      case frameTypes.goAway:
        this.close();
        break;
      case frameTypes.windowUpdate:
        this.#onWindowUpdate(id, payload.readUInt32BE(0) & 0x7fffffff);
        break;
      case frameTypes.pushPromise:
        throw protocolError("a push of a client");
      default: // Priorities, too: they are no longer of use.
        this.#countIdle();
    }
  }

  #onHeaders(id: number, flag: number, payload: Buffer): void {
    if (id % 2 === 0) throw protocolError("a stream that is not the client's");
    let part = unpadded(flag, payload);
    if ((flag & flags.priority) !== 0) {
      if (part.length < 5) throw protocolError("a priority that is cut off");
      part = part.subarray(5);
    }
    if ((flag & flags.endHeaders) !== 0) {
      this.#endOfHeaders(id, flag, part);
      return;
    }
    // What is only a little too large is read, and answered with 431.
    this.#block = new HeaderBlock(id, flag, 2 * this.#options.maxHeaderBytes);
    this.#block.add(part);
  }

  #onContinuation(flag: number, payload: Buffer): void {
    const block = this.#block;
    if (block === undefined) throw protocolError("headers go on that did not begin");
    block.add(payload);
    if ((flag & flags.endHeaders) === 0) return;
    this.#block = undefined;
    this.#endOfHeaders(block.stream, block.flags, block.bytes());
  }

  #endOfHeaders(id: number, flag: number, block: Buffer): void {
    // Whatever becomes of them: the table is what all have made of it.
    const { fields, tooLarge } = this.#decoder.decode(block);
    const isWhole = (flag & flags.endStream) !== 0;
    const stream = this.#streams.get(id);
    if (stream !== undefined) {
      if (stream.received) this.#resetFor(stream, errorCodes.streamClosed);
      else if (!isWhole || tooLarge || !areTrailers(fields)) this.#resetFor(stream, errorCodes.protocol);
      else this.#endOfRequest(stream);
      return;
    }
    if (id <= this.#lastId) {
      this.#expectReset(id);
      this.#countIdle();
      return;
    }
    this.#lastId = id;
    if (this.#leaving === "refusing" || this.#isFull) this.#refuse(id, errorCodes.refusedStream);
    else if (tooLarge) this.#answer(id, 431, isWhole);
    else this.#open(id, fields, isWhole);
  }

  /** A client that breaks off what it asked for does not thereby get more done at a time. */
  get #isFull(): boolean {
    const { maxConcurrentStreams } = this.#options;
    return this.#streams.size >= maxConcurrentStreams || this.#handled >= 2 * maxConcurrentStreams;
  }

  #open(id: number, fields: readonly string[], isWhole: boolean): void {
    const head = requestHeadOf(fields);
    if (head === undefined || (isWhole && (head.contentLength ?? 0) > 0)) {
      this.#refuse(id, errorCodes.protocol);
      return;
    }
    const stream = this.#newStream({ id, head, fields, isWhole });
    this.#handled++;
    this.#events.request(stream);
  }

  #newStream(request: { id: number; head: RequestHead; fields: readonly string[]; isWhole: boolean }): ServerStream {
    const stream = new ServerStream(this, request, { send: this.#output.streamWindow, receive: streamWindowBytes });
    this.#streams.set(request.id, stream);
    return stream;
  }

  #refuse(id: number, code: number): void {
    this.#countIdle();
    this.#rememberReset(id);
    this.#reply(numberFrame(frameTypes.resetStream, id, code));
  }

  /** Of a request that no handler sees. */
  #answer(id: number, status: number, isWhole: boolean): void {
    const head = { method: "", path: "", authority: undefined, contentLength: undefined };
    const stream = this.#newStream({ id, head, fields: [], isWhole });
    stream.respond(framedFields(id, [":status", String(status)], true), true);
  }

  #onData(id: number, flag: number, payload: Buffer): void {
    if (this.#isIdle(id)) throw protocolError("data of a stream that did not begin");
    if (!this.#receiveWindow.take(payload.length)) throw windowError("more data than the window lets in");
    const data = unpadded(flag, payload);
    const ends = (flag & flags.endStream) !== 0;
    const stream = this.#streams.get(id);
    if (data.length === 0 && (!ends || stream === undefined)) this.#countIdle();
    if (stream === undefined) {
      this.#expectReset(id);
      this.#giveBack(payload.length);
      return;
    }
    if (stream.received || stream.receiveWindow?.take(payload.length) === false) {
      this.#giveBack(payload.length);
      this.#resetFor(stream, stream.received ? errorCodes.streamClosed : errorCodes.flowControl);
      return;
    }
    // Nobody is to work off what only fills up the frame.
    if (data.length < payload.length) this.consumed(stream, payload.length - data.length);
    if (data.length > 0 && !stream.onData(data)) this.#resetFor(stream, errorCodes.protocol);
    else if (ends) this.#endOfRequest(stream);
  }

  #endOfRequest(stream: ServerStream): void {
    if (!stream.onRequestEnd()) this.#resetFor(stream, errorCodes.protocol);
  }

  /** A mistake of the client: as cheap a way to have work begun and thrown away as to break it off itself (CVE-2025-8671). */
  #resetFor(stream: ServerStream, code: number): void {
    this.#countReset();
    this.reset(stream, code);
  }

  #onReset(id: number): void {
    if (this.#isIdle(id)) throw protocolError("the end of a stream that did not begin");
    const stream = this.#streams.get(id);
    if (stream === undefined) {
      this.#countIdle();
      return;
    }
    this.#countReset();
    stream.close();
  }

  #onSettings(flag: number, payload: Buffer): void {
    const isAck = (flag & flags.ack) !== 0;
    if (payload.length % 6 !== 0 || (isAck && payload.length > 0)) {
      throw frameSizeError(`settings of ${payload.length} bytes`);
    }
    if (this.#hasSettings) this.#countIdle();
    if (isAck) return;
    for (let at = 0; at < payload.length; at += 6) this.#onSetting(payload.readUInt16BE(at), payload.readUInt32BE(at + 2));
    this.#hasSettings = true;
    this.#reply(frame(frameTypes.settings, flags.ack, 0, noBytes));
  }

  #onSetting(id: number, value: number): void {
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

  #onWindowUpdate(id: number, increment: number): void {
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

  #rememberReset(id: number): void {
    if (this.#reset.push(id) > mostRemembered) this.#reset.shift();
  }

  /** Of a stream that is over: the client may not have known. */
  #expectReset(id: number): void {
    if (!this.#reset.includes(id)) throw new ConnectionError(errorCodes.streamClosed, "more of a stream that is over");
  }

  #countReset(): void {
    if (!this.#resets.spend()) throw tooMuch("too many streams were broken off");
  }

  /** Frames that move nothing cost us more than the client. */
  #countIdle(): void {
    if (!this.#idleFrames.spend()) throw tooMuch("too many frames that bring nothing forward");
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

  #fail(code: number, reason: string): void {
    this.#failure ??= reason;
    this.#closingSince ??= performance.now();
    this.#goAway(this.#lastId, code);
    for (const stream of this.#streams.values()) stream.close();
  }

  /** When nothing is under way any more: ends, after what is still to be said. */
  #endIfDone(): void {
    const isLast = this.#closingSince !== undefined || this.#leaving === "refusing";
    if (this.#isClosed || this.#streams.size > 0 || !isLast) return;
    this.#closingSince ??= performance.now();
    if (this.#output.isIdle) this.#socket.end();
  }

  #onClose(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    for (const stream of this.#streams.values()) stream.close();
    this.#events.closed(this.#failure);
  }
}
