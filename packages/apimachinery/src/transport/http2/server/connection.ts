import type { Duplex } from "node:stream";
import { messageOf } from "../../../objects/errors/message.ts";
import { TransientMap } from "../../../process/memory/transient-map.ts";
import { giveSlabBack, largestSlabBytes, ReceiveWindow, takeSlab } from "../wire/buffers.ts";
import { codeOf, errorCodes, protocolError, tooMuch, windowError } from "../wire/connection-error.ts";
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
} from "../wire/frames.ts";
import type { DecodedFields } from "../wire/hpack.ts";
import { AbuseLimits } from "./abuse-limits.ts";
import type { ConnectionBudget } from "./client-budgets.ts";
import { areTrailers, type FieldWork, type HeaderMemory, requestHeadOf, type ServerFrameReceiver, ServerInput } from "./input.ts";
import { ServerStream, type StreamConnection } from "./stream.ts";

export interface ServerConnectionOptions {
  /** SETTINGS_MAX_CONCURRENT_STREAMS. */
  readonly maxConcurrentStreams: number;
  /** SETTINGS_MAX_HEADER_LIST_SIZE of a request, as counted by RFC 9113, section 6.5.2. */
  readonly maxHeaderBytes: number;
  /** Time limit for the preface, for a complete header block, and for closing after GOAWAY. */
  readonly headersTimeoutMs: number;
  /** A connection without open streams is closed after this time. */
  readonly idleTimeoutMs: number;
  /** Shared by the connections of a server. */
  readonly fieldWork: FieldWork;
  readonly headerMemory: HeaderMemory;
  /** Budget shared with the client's other connections; undefined: none. */
  readonly client?: ConnectionBudget | undefined;
}

interface ServerConnectionEvents {
  /**
   * A request's headers are complete. Also called for a request with too many header fields ({@link ServerStream.isCut}). The
   * handler calls {@link ServerConnection.handled} once when it has stopped working on the request.
   */
  request(stream: ServerStream): void;
  /** A request, or with `isWhole` the connection, was refused for a violation of the protocol or of its limits. */
  refused(reason: string, isWhole: boolean): void;
  /** Called once, as the last event. @param reason undefined after an orderly end */
  closed(reason: string | undefined): void;
}

const streamWindowBytes = 256 * 1024;
const connectionWindowBytes = 4 * 1024 * 1024;
const lastStreamId = 2 ** 31 - 1;
const largestFrameBytes = 2 ** 24 - 1;
/** Grace period for a client to see a GOAWAY or the end of a stream. */
const graceMs = 1_000;
/** Upper bound of control frames queued for a client that does not read. */
const mostReplies = 1_000;
/**
 * WINDOW_UPDATE frames that have an effect: clients send one for a stream and one for the connection when a stream begins, and
 * at most as many for each DATA frame that they have read, or for parts of it.
 */
const updatesPerStream = 4;
const updatesPerWrite = 4;
const bytesPerUpdate = 256;
const noBytes = Buffer.alloc(0);
const lengthFault = "body length differs from content-length";

/**
 * The server side of one HTTP/2 connection. Node's own implementation creates a stream with two buffers and a dozen events for
 * each request, and allocates about a kilobyte for each watch event.
 * Source: RFC 9113
 */
export class ServerConnection implements StreamConnection, ServerFrameReceiver {
  readonly #socket: Duplex;
  readonly #options: ServerConnectionOptions;
  readonly #events: ServerConnectionEvents;
  readonly #input: ServerInput;
  readonly #output: ServerOutput;
  readonly #abuse: AbuseLimits;
  /** WINDOW_UPDATE frames that the client may send for what it was sent; more have no effect. */
  #updates = updatesPerStream;
  readonly #streams = new TransientMap<number, ServerStream>();
  #lastId = 0;
  /** Requests that a handler works on, including those the client has reset. */
  #handled = 0;
  readonly #receiveWindow = new ReceiveWindow(connectionWindowBytes);
  /** Graceful shutdown: "notified" after the first GOAWAY, "refusing" once new streams are refused. */
  #leaving: "no" | "notified" | "refusing" = "no";
  /** When closing began; nothing is read from then on. */
  #closingSince: number | undefined;
  #isClosed = false;
  #failure: string | undefined;
  #idleSince = performance.now();
  /** Chunks received while the per-iteration limit on header fields is reached. */
  readonly #held: Buffer[] = [];

  constructor(socket: Duplex, options: ServerConnectionOptions, events: ServerConnectionEvents) {
    this.#socket = socket;
    this.#options = options;
    this.#events = events;
    this.#abuse = new AbuseLimits(options.client);
    this.#input = new ServerInput(this, options.maxHeaderBytes, options.headerMemory);
    this.#output = new ServerOutput(
      socket,
      (bytes) => {
        this.#updates += updatesPerWrite + bytes / bytesPerUpdate;
      },
      () => this.#endIfDone(),
    );
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

  /** Number of open streams. */
  get size(): number {
    return this.#streams.size;
  }

  // Operations of the server

  /** Reports that a handler has stopped working on a request. */
  handled(): void {
    this.#handled--;
  }

  /** Graceful shutdown in two steps: a GOAWAY that still admits streams, and {@link close} after a grace period. */
  leave(): void {
    if (this.#leaving !== "no" || this.#isClosed) return;
    this.#leaving = "notified";
    this.#goAway(lastStreamId, errorCodes.none);
    setTimeout(() => this.close(), graceMs).unref();
  }

  /** Refuses new streams and ends the connection when the open ones are done. */
  close(): void {
    if (this.#leaving === "refusing" || this.#isClosed) return;
    this.#leaving = "refusing";
    this.#goAway(this.#lastId, errorCodes.none);
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** Enforces the header and idle timeouts. To be called periodically. @param now `performance.now()` */
  check(now: number): void {
    const { headersTimeoutMs, idleTimeoutMs } = this.#options;
    const awaited = this.#input.hasBegun ? (this.#closingSince ?? this.#input.headersSince) : this.#idleSince;
    if (awaited !== undefined && now - awaited >= headersTimeoutMs) {
      this.#failure ??= "timeout";
      this.destroy();
    } else if (this.#streams.size === 0 && now - this.#idleSince >= idleTimeoutMs) {
      this.close();
      this.#onlyEnd();
    }
  }

  // StreamConnection

  ready(stream: ServerStream): void {
    this.#output.ready(stream);
  }

  consumed(stream: ServerStream, bytes: number): void {
    this.#giveBack(bytes);
    if (stream.isClosed || stream.received) return;
    this.#sendWindowUpdate(stream.id, stream.receiveWindow?.giveBack(bytes) ?? 0);
  }

  reset(stream: ServerStream, code: number): void {
    this.#abuse.weReset(stream.id);
    this.#output.control(numberFrame(frameTypes.resetStream, stream.id, code));
    stream.close();
  }

  /**
   * The rest of the body of a request that was answered early is not needed (RFC 9113, 8.1). The reset is delayed, because it can
   * overtake the response in clients, Node's among them.
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

  // ServerFrameReceiver

  #onChunk(chunk: Buffer): void {
    const turn = this.#held.length > 0 ? undefined : this.#options.fieldWork.wait();
    if (turn === undefined && this.#held.length === 0) {
      this.#take(chunk);
      return;
    }
    this.#held.push(chunk);
    this.#socket.pause();
    if (turn !== undefined) void turn.then(() => this.#takeHeld());
  }

  /** Processes the chunks held back by the per-iteration limit on header fields. */
  #takeHeld(): void {
    for (const chunk of this.#held.splice(0)) this.#take(chunk);
    this.#socket.resume();
  }

  #take(chunk: Buffer): void {
    try {
      this.#input.take(chunk);
    } catch (err) {
      this.#fail(codeOf(err), messageOf(err));
    }
  }

  onHeaders(id: number, isWhole: boolean, decoded: DecodedFields): void {
    this.#options.fieldWork.add(decoded.count);
    const stream = this.#streams.get(id);
    if (stream !== undefined) {
      if (stream.received) this.#resetFor(stream, errorCodes.streamClosed, "HEADERS after END_STREAM");
      else if (!isWhole || decoded.tooLarge || !areTrailers(decoded.fields))
        this.#resetFor(stream, errorCodes.protocol, "invalid trailers");
      else this.#endOfRequest(stream);
      return;
    }
    if (id <= this.#lastId) {
      this.#abuse.checkLate(id);
      this.#abuse.countIdle();
      return;
    }
    this.#lastId = id;
    if (this.#leaving === "refusing" || this.#isFull) this.#refuse(id, errorCodes.refusedStream);
    else this.#open(id, isWhole, decoded);
  }

  /** Counts handlers as well as open streams: resetting streams does not raise a client's concurrency (CVE-2023-44487). */
  get #isFull(): boolean {
    const { maxConcurrentStreams } = this.#options;
    return this.#streams.size >= maxConcurrentStreams || this.#handled >= 2 * maxConcurrentStreams;
  }

  #open(id: number, isWhole: boolean, { fields, tooLarge }: DecodedFields): void {
    const head = requestHeadOf(fields);
    const fault = typeof head !== "object" ? head : isWhole && (head.contentLength ?? 0) > 0 ? lengthFault : undefined;
    if (typeof head !== "object" || fault !== undefined) {
      this.#events.refused(fault!, false);
      this.#refuse(id, errorCodes.protocol);
      return;
    }
    // The handler's side answers these, with 400 and 431.
    if (head.refusal !== undefined) this.#events.refused(head.refusal, false);
    else if (tooLarge) this.#events.refused("header fields exceed the limit", false);
    this.#updates += updatesPerStream;
    const windows = { send: this.#output.streamWindow, receive: streamWindowBytes };
    const stream = new ServerStream(this, { id, head, fields, isWhole, isCut: tooLarge }, windows);
    this.#streams.set(id, stream);
    this.#handled++;
    this.#events.request(stream);
  }

  #refuse(id: number, code: number): void {
    this.#abuse.countIdle();
    this.#abuse.weReset(id);
    this.#reply(numberFrame(frameTypes.resetStream, id, code));
  }

  onData(id: number, data: Buffer, windowBytes: number, ends: boolean): void {
    if (this.#isIdle(id)) throw protocolError("DATA on an idle stream");
    if (!this.#receiveWindow.take(windowBytes)) throw windowError("DATA exceeds the flow-control window");
    const stream = this.#streams.get(id);
    if (data.length === 0 && (!ends || stream === undefined)) this.#abuse.countIdle();
    if (stream === undefined) {
      this.#abuse.checkLate(id);
      this.#giveBack(windowBytes);
      return;
    }
    if (stream.received || stream.receiveWindow?.take(windowBytes) === false) {
      this.#giveBack(windowBytes);
      if (stream.received) this.#resetFor(stream, errorCodes.streamClosed, "DATA after END_STREAM");
      else this.#resetFor(stream, errorCodes.flowControl, "DATA exceeds the flow-control window");
      return;
    }
    // Padding is credited at once, as no handler consumes it.
    if (data.length < windowBytes) this.consumed(stream, windowBytes - data.length);
    if (data.length > 0 && !stream.onData(data)) this.#resetFor(stream, errorCodes.protocol, lengthFault);
    else if (ends) this.#endOfRequest(stream);
  }

  #endOfRequest(stream: ServerStream): void {
    if (!stream.onRequestEnd()) this.#resetFor(stream, errorCodes.protocol, lengthFault);
  }

  /**
   * Resets a stream for a protocol error of the client. Counts as if the client had reset it, because it discards work just as
   * cheaply (CVE-2025-8671).
   */
  #resetFor(stream: ServerStream, code: number, reason: string): void {
    this.#events.refused(reason, false);
    this.#abuse.countReset();
    this.reset(stream, code);
  }

  onReset(id: number): void {
    if (this.#isIdle(id)) throw protocolError("RST_STREAM on an idle stream");
    const stream = this.#streams.get(id);
    if (stream === undefined) {
      this.#abuse.countIdle();
      return;
    }
    this.#abuse.countReset();
    stream.close();
  }

  onSetting(id: number, value: number): void {
    switch (id) {
      case settings.enablePush:
        if (value > 1) throw protocolError("invalid value of SETTINGS_ENABLE_PUSH");
        break;
      case settings.maxFrameSize:
        if (value < defaultMaxFrameBytes || value > largestFrameBytes)
          throw protocolError(`invalid SETTINGS_MAX_FRAME_SIZE ${value}`);
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

  /** The server sends no PING of its own. */
  onPong(): void {}

  onGoAway(): void {
    this.close();
  }

  onIdleFrame(): void {
    this.#abuse.countIdle();
  }

  onStalledHeaders(): void {
    this.#fail(errorCodes.enhanceYourCalm, "too many incomplete header blocks on the server; this one was the oldest");
  }

  onWindowUpdate(id: number, increment: number): void {
    if (this.#updates >= 1) this.#updates--;
    else this.#abuse.countIdle();
    if (id === 0) {
      this.#output.widen(increment, () => this.#streams.values());
      return;
    }
    if (this.#isIdle(id)) throw protocolError("WINDOW_UPDATE on an idle stream");
    const stream = this.#streams.get(id);
    if (stream === undefined) return;
    stream.sendWindow += increment;
    if (increment === 0) this.#resetFor(stream, errorCodes.protocol, "WINDOW_UPDATE with increment 0");
    else if (stream.sendWindow > widestWindow) this.#resetFor(stream, errorCodes.flowControl, "flow-control window above 2^31-1");
    else if (stream.unsent > 0) this.#output.ready(stream);
  }

  // Connection management

  #isIdle(id: number): boolean {
    return id > this.#lastId || id % 2 === 0;
  }

  #reply(bytes: Buffer): void {
    if (this.#output.waiting >= mostReplies) throw tooMuch("the client does not read replies to its PING and SETTINGS frames");
    this.#output.control(bytes);
  }

  /** Returns consumed bytes to the connection's window. */
  #giveBack(bytes: number): void {
    this.#sendWindowUpdate(0, this.#receiveWindow.giveBack(bytes));
  }

  #sendWindowUpdate(id: number, bytes: number): void {
    if (bytes > 0) this.#output.control(numberFrame(frameTypes.windowUpdate, id, bytes));
  }

  #goAway(last: number, code: number): void {
    const payload = Buffer.allocUnsafe(8);
    payload.writeUInt32BE(last, 0);
    payload.writeUInt32BE(code, 4);
    this.#output.control(frame(frameTypes.goAway, 0, 0, payload));
  }

  /** Ends the connection of a client that is refused for now ({@link ClientBudgets}). */
  refuse(): void {
    this.#fail(errorCodes.enhanceYourCalm, "too many reset streams of this client");
    this.#endIfDone();
  }

  #fail(code: number, reason: string): void {
    if (code === errorCodes.enhanceYourCalm) this.#options.client?.ended();
    this.#failure ??= reason;
    this.#events.refused(reason, true);
    this.#onlyEnd();
    this.#goAway(this.#lastId, code);
    for (const stream of this.#streams.values()) stream.close();
  }

  /** Ignores further input and starts the closing timeout. */
  #onlyEnd(): void {
    this.#closingSince ??= performance.now();
    this.#input.close();
  }

  /** Ends the socket when closing, no stream is open and all output is written. */
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

/** Bytes of one stream before the next one is served: a large list does not delay watch events. */
const quantumBytes = 4 * defaultMaxFrameBytes;

/**
 * Output of a connection. All frames of one event-loop turn go out in one write, and the next write starts when that one is done.
 * Until then data stays queued in its stream.
 */
class ServerOutput {
  readonly #socket: Duplex;
  /** Called with the number of bytes of a stream that are written. */
  readonly #onSent: (bytes: number) => void;
  /** Called when a write is done and nothing is queued. */
  readonly #onIdle: () => void;
  #control: Buffer[] = [];
  #controlBytes = 0;
  #streams: ServerStream[] = [];
  /** The connection's send window, in bytes. */
  #window = defaultWindowBytes;
  /** The initial send window of new streams (SETTINGS_INITIAL_WINDOW_SIZE). */
  #streamWindow = defaultWindowBytes;
  #isScheduled = false;
  #slab: Buffer | undefined;

  constructor(socket: Duplex, onSent: (bytes: number) => void, onIdle: () => void) {
    this.#socket = socket;
    this.#onSent = onSent;
    this.#onIdle = onIdle;
  }

  /** Number of queued control frames. */
  get waiting(): number {
    return this.#control.length;
  }

  /** True when no write is running or scheduled. */
  get isIdle(): boolean {
    return this.#slab === undefined && !this.#isScheduled;
  }

  get streamWindow(): number {
    return this.#streamWindow;
  }

  /** Applies a WINDOW_UPDATE of the connection. @param streams returns all open streams @throws ConnectionError */
  widen(increment: number, streams: () => readonly ServerStream[]): void {
    if (increment === 0) throw protocolError("WINDOW_UPDATE with increment 0");
    const wasShut = this.#window <= 0;
    this.#window += increment;
    if (this.#window > widestWindow) throw windowError("flow-control window above 2^31-1");
    if (wasShut) for (const stream of streams()) if (stream.unsent > 0) this.ready(stream);
  }

  /** Applies SETTINGS_INITIAL_WINDOW_SIZE, also to open streams. @throws ConnectionError */
  resizeStreams(bytes: number, streams: readonly ServerStream[]): void {
    if (bytes > widestWindow) throw windowError("flow-control window above 2^31-1");
    const more = bytes - this.#streamWindow;
    this.#streamWindow = bytes;
    for (const stream of streams) {
      stream.sendWindow += more;
      if (stream.sendWindow > widestWindow) throw windowError("flow-control window of a stream above 2^31-1");
      if (stream.unsent > 0) this.ready(stream);
    }
  }

  /** Queues a control frame, which is not flow-controlled and precedes the data of all streams. */
  control(frame: Buffer): void {
    this.#control.push(frame);
    this.#controlBytes += frame.length;
    this.#schedule();
  }

  /** Queues a stream that has headers or data to send. */
  ready(stream: ServerStream): void {
    if (!stream.isListed) {
      stream.isListed = true;
      this.#streams.push(stream);
    }
    this.#schedule();
  }

  /** Flushes once per event-loop turn. `process.nextTick` would be too early: Node runs it after each callback of a read. */
  #schedule(): void {
    if (this.#isScheduled || this.#slab !== undefined) return;
    this.#isScheduled = true;
    setImmediate(this.#flush);
  }

  readonly #flush = (): void => {
    this.#isScheduled = false;
    if (this.#socket.destroyed || this.#slab !== undefined) return;
    const slab = takeSlab(this.#sendable());
    this.#slab = slab;
    const bytes = this.#fill(slab);
    if (bytes === 0) this.#written();
    else this.#socket.write(slab.subarray(0, bytes), this.#written);
  };

  readonly #written = (): void => {
    const slab = this.#slab;
    this.#slab = undefined;
    if (slab !== undefined) giveSlabBack(slab);
    if (this.#control.length > 0 || this.#streams.length > 0) this.#schedule();
    else this.#onIdle();
  };

  /** @returns the slab size for what can be sent now, at most that of a reusable slab */
  #sendable(): number {
    let bytes = this.#controlBytes;
    for (const stream of this.#streams) {
      bytes += stream.sendable;
      if (bytes >= largestSlabBytes) break;
    }
    // Header frames are not split.
    return Math.max(Math.min(bytes, largestSlabBytes), this.#controlBytes + (this.#streams[0]?.headerBytes ?? 0));
  }

  /** @returns the number of bytes written */
  #fill(slab: Buffer): number {
    let at = 0;
    for (const frame of this.#control) at += frame.copy(slab, at);
    this.#control = [];
    this.#controlBytes = 0;
    const streams = this.#streams;
    this.#streams = [];
    for (let next = 0; next < streams.length; next++) {
      const stream = streams[next]!;
      const [before, start] = [stream.unsent, at];
      at = stream.fill(slab, at, Math.min(this.#window, quantumBytes));
      const sent = before - stream.unsent;
      this.#window -= sent;
      if (sent > 0) this.#onSent(sent);
      if (stream.canSend(this.#window)) {
        if (at > start) streams.push(stream);
        else this.#streams.push(stream); // the slab is full
        continue;
      }
      stream.isListed = false;
      stream.settle();
    }
    return at;
  }
}
