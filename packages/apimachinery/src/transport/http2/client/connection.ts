import type { Duplex } from "node:stream";
import { messageOf } from "../../../objects/errors/message.ts";
import { TransientMap } from "../../../process/memory/transient-map.ts";
import { GatheredBytes, ReceiveWindow } from "../wire/buffers.ts";
import { codeOf, errorCodes, protocolError, tooMuch, windowError } from "../wire/connection-error.ts";
import {
  defaultWindowBytes,
  FrameInput,
  type FrameReceiver,
  flags,
  frame,
  frameTypes,
  noTable,
  numberFrame,
  type PartialHeaderBlock,
  preface,
  settings,
  settingsFrame,
  widestWindow,
} from "../wire/frames.ts";
import { newStaticFieldsDecoder } from "../wire/hpack.ts";
import { ClientOutput, ClientStream, type Fields, type StreamConnection, type StreamEnd, type StreamHandlers } from "./stream.ts";

interface ClientConnectionOptions {
  /** Receive window of a stream. */
  readonly streamWindowBytes: number;
  /** Receive window of the connection, at least 65,535 bytes; bytes are returned to it when they arrive. */
  readonly connectionWindowBytes: number;
}

export interface ClientConnectionEvents {
  /** The server's first SETTINGS arrived; requests may be made. */
  ready(): void;
  /** Data was received. */
  heard?(): void;
  /** {@link ClientConnection.maxStreams} may have changed. */
  changed?(): void;
  /** No further requests are accepted (GOAWAY, stream ids exhausted); open streams continue. */
  leaving(): void;
  /** The last call, exactly once. */
  closed(reason: string): void;
}

const lastStreamId = 2 ** 31 - 1;
/** SETTINGS_HEADER_TABLE_SIZE of a server that sends none. Source: RFC 9113, section 6.5.2 */
const defaultTableBytes = 4096;
/** A server that sends this many PING and SETTINGS frames while its answers are queued does not read them. */
const mostUnreadAnswers = 10_000;
const noBytes = Buffer.alloc(0);
const goneAway: StreamEnd = { type: "refused", reason: "the server sent GOAWAY" };

/**
 * The client side of one HTTP/2 connection. node:http2 creates a stream with two buffers, a session reference and a dozen events
 * for each request, which cost more than the request itself.
 * Source: RFC 9113
 */
export class ClientConnection implements StreamConnection, ServerFrames {
  readonly output: ClientOutput;
  readonly #socket: Duplex;
  readonly #options: ClientConnectionOptions;
  readonly #events: ClientConnectionEvents;
  readonly #input: ClientInput;
  readonly #streams = new TransientMap<number, ClientStream>();
  /** Streams that wait while the server's MAX_CONCURRENT_STREAMS is reached, in order. */
  #waiting: ClientStream[] = [];
  #nextId = 1;
  #mostStreams = Number.POSITIVE_INFINITY;
  /** More than half of the window is always open, so that the server cannot exceed it with a frame. */
  readonly #receiveWindow: ReceiveWindow;
  /** The server reduced its header table: each block has to acknowledge it (RFC 7541, section 4.2). */
  #acknowledgesTable = false;
  #isReady = false;
  #isLeaving = false;
  #isClosed = false;
  #failure: string | undefined;
  /** Answers to PING and SETTINGS since the socket last had nothing left to write. */
  #unreadAnswers = 0;
  /** Callbacks of unanswered pings, oldest first. */
  readonly #pings: (() => void)[] = [];

  /** @param socket may still be connecting; closed with the connection */
  constructor(socket: Duplex, options: ClientConnectionOptions, events: ClientConnectionEvents) {
    this.#socket = socket;
    this.#options = options;
    this.#events = events;
    this.#input = new ClientInput(this);
    this.output = new ClientOutput(socket);
    this.#receiveWindow = new ReceiveWindow(options.connectionWindowBytes);
    socket.on("data", (chunk: Buffer) => this.#take(chunk));
    socket.on("error", (err) => {
      this.#failure ??= err.message;
    });
    socket.once("end", () => this.#fail("the connection was closed"));
    socket.once("close", () => this.#onClose());
    this.output.send(preface);
    this.output.send(
      settingsFrame([
        [settings.headerTableSize, 0],
        [settings.enablePush, 0],
        [settings.initialWindowSize, options.streamWindowBytes],
      ]),
    );
    // An increment of 0 is a protocol error of this client (RFC 9113, section 6.9).
    const grown = options.connectionWindowBytes - defaultWindowBytes;
    if (grown > 0) this.output.send(numberFrame(frameTypes.windowUpdate, 0, grown));
    this.output.flush();
  }

  // Operations of the client

  /** Maximum number of concurrent streams; 0 when no further requests are accepted. */
  get maxStreams(): number {
    return this.#acceptsMore ? this.#mostStreams : 0;
  }

  /**
   * Sends a request, or queues it while the server's limit of streams is reached.
   * @param block the encoded header fields
   * @param ends whether `body` ends the request
   * @throws Error when the connection accepts no more requests
   */
  request(block: Buffer, body: Buffer, ends: boolean, handlers: StreamHandlers): ClientStream {
    if (this.#nextId > lastStreamId) this.#leave();
    if (!this.#acceptsMore) throw new Error("the connection accepts no new streams");
    const sent = this.#acknowledgesTable ? Buffer.concat([Buffer.from([noTable]), block]) : block;
    const stream = new ClientStream(this, { block: sent, body, ends }, handlers, this.#options.streamWindowBytes);
    if (this.#streams.size < this.#mostStreams) this.#open(stream);
    else this.#waiting.push(stream);
    return stream;
  }

  /** @param answered called when the server answers */
  ping(answered: () => void): void {
    this.#pings.push(answered);
    this.output.send(frame(frameTypes.ping, 0, 0, Buffer.alloc(8)));
  }

  /** Accepts no more requests and closes the connection when the open streams are done. */
  close(): void {
    this.#refuseMore();
    this.#endIfDone();
  }

  /** Closes the connection; open streams end as `lost`. */
  destroy(reason: Error): void {
    this.#fail(reason.message);
  }

  // StreamConnection

  cancelled(stream: ClientStream): void {
    if (stream.id === 0) {
      this.#waiting = this.#waiting.filter((one) => one !== stream);
      return;
    }
    this.#streams.delete(stream.id);
    this.#openWaiting();
    this.#endIfDone();
  }

  // ServerFrames

  #take(chunk: Buffer): void {
    this.#events.heard?.();
    try {
      this.#input.take(chunk);
    } catch (err) {
      this.#goAway(codeOf(err));
      this.#fail(messageOf(err));
    }
  }

  onFields(id: number, fields: Fields, ends: boolean): void {
    const stream = this.#streamOf(id);
    if (stream === undefined) return;
    stream.onFields(fields);
    if (ends) this.#onEnd(stream);
  }

  onData(id: number, data: Buffer, windowBytes: number, ends: boolean): void {
    const grown = this.#receiveWindow.giveBack(windowBytes);
    if (grown > 0) this.output.send(numberFrame(frameTypes.windowUpdate, 0, grown));
    const stream = this.#streamOf(id);
    if (stream === undefined) return;
    const violation = stream.onData(data, windowBytes, ends);
    if (violation !== undefined) this.#resetFor(stream, violation);
    else if (ends) this.#onEnd(stream);
  }

  onReset(id: number, code: number): void {
    const stream = this.#streamOf(id);
    if (stream === undefined) return;
    const type = code === errorCodes.refusedStream ? "refused" : "lost";
    this.#finish(stream, { type, code, reason: `stream closed with error code ${code}` });
  }

  onSetting(id: number, value: number): void {
    switch (id) {
      case settings.headerTableSize:
        this.#acknowledgesTable ||= value < defaultTableBytes;
        break;
      case settings.maxConcurrentStreams:
        this.#mostStreams = value;
        break;
      case settings.initialWindowSize:
        this.#resizeStreams(this.output.resizeStreams(value));
        break;
      case settings.maxFrameSize:
        this.output.frameBytes = value;
        break;
    }
  }

  onSettings(): void {
    this.#countAnswer();
    this.output.send(frame(frameTypes.settings, flags.ack, 0, noBytes));
    if (this.#isReady) this.#events.changed?.();
    else {
      this.#isReady = true;
      this.#events.ready();
    }
    for (const stream of this.#streams.values()) stream.pump();
    this.#openWaiting();
  }

  onPing(payload: Buffer): void {
    this.#countAnswer();
    this.output.pong(payload);
  }

  /** @throws ConnectionError when the server sends PING and SETTINGS frames without reading the answers */
  #countAnswer(): void {
    if (this.#socket.writableLength === 0) this.#unreadAnswers = 0;
    else if (++this.#unreadAnswers > mostUnreadAnswers)
      throw tooMuch("the server does not read replies to its PING and SETTINGS frames");
  }

  onPong(): void {
    this.#pings.shift()?.();
  }

  /** Not limited, unlike in a server: only required replies are, see `#countAnswer`. */
  onIdleFrame(): void {}

  onGoAway(last: number): void {
    this.#leave();
    for (const stream of this.#streams.values()) if (stream.id > last) this.#finish(stream, goneAway);
    this.#endIfDone();
  }

  onWindowUpdate(id: number, increment: number): void {
    if (id === 0) {
      // If the output was not blocked, no stream waits for the window, and etcd updates it with every request.
      if (this.output.widen(increment)) for (const stream of this.#streams.values()) stream.pump();
      return;
    }
    const stream = this.#streamOf(id);
    if (stream === undefined) return;
    if (increment === 0) this.#resetFor(stream, errorCodes.protocol);
    else if (stream.resize(increment) > widestWindow) this.#resetFor(stream, errorCodes.flowControl);
    else stream.pump();
  }

  // Streams

  /** @returns undefined for a stream that is over @throws ConnectionError for one that was never opened */
  #streamOf(id: number): ClientStream | undefined {
    if (id >= this.#nextId || id % 2 === 0) throw protocolError(`frame on idle stream ${id}`);
    return this.#streams.get(id);
  }

  #open(stream: ClientStream): void {
    const id = this.#nextId;
    this.#nextId += 2;
    this.#streams.set(id, stream);
    stream.open(id);
  }

  #openWaiting(): void {
    while (this.#acceptsMore && this.#waiting.length > 0 && this.#streams.size < this.#mostStreams) {
      this.#open(this.#waiting.shift()!);
    }
  }

  #resizeStreams(change: number): void {
    for (const stream of this.#streams.values()) {
      if (stream.resize(change) > widestWindow) throw windowError("flow-control window of a stream above 2^31-1");
    }
  }

  #onEnd(stream: ClientStream): void {
    this.#streams.delete(stream.id);
    stream.onEnd();
    this.#afterStream();
  }

  #resetFor(stream: ClientStream, code: number): void {
    this.output.send(numberFrame(frameTypes.resetStream, stream.id, code));
    this.#finish(stream, { type: "lost", reason: `the server violates the protocol (error code ${code})` });
  }

  #finish(stream: ClientStream, end: StreamEnd): void {
    this.#streams.delete(stream.id);
    stream.finish(end);
    this.#afterStream();
  }

  #afterStream(): void {
    this.#openWaiting();
    this.#endIfDone();
  }

  // Connection management

  get #acceptsMore(): boolean {
    return !this.#isClosed && !this.#isLeaving && !this.#socket.destroyed;
  }

  /** The connection takes no more requests and ends after the open ones: GOAWAY was received, or the stream IDs are used up. */
  #leave(): void {
    if (this.#isLeaving) return;
    this.#isLeaving = true;
    this.#events.leaving();
    this.#refuseMore();
  }

  #refuseMore(): void {
    this.#isLeaving = true;
    for (const stream of this.#waiting.splice(0)) stream.finish(goneAway);
  }

  #endIfDone(): void {
    if (!this.#isLeaving || this.#streams.size > 0 || this.#socket.destroyed) return;
    this.#goAway(errorCodes.none);
    this.#socket.destroy();
  }

  /** Tells the server why the connection ends, if it can still be written to. */
  #goAway(code: number): void {
    const payload = Buffer.alloc(8);
    payload.writeUInt32BE(code, 4);
    this.output.send(frame(frameTypes.goAway, 0, 0, payload));
    this.output.flush();
  }

  #fail(reason: string): void {
    this.#failure ??= reason;
    this.#socket.destroy();
  }

  #onClose(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.output.close();
    const reason = this.#failure ?? "the connection was closed";
    for (const stream of this.#streams.values()) stream.finish({ type: "lost", reason });
    this.#streams.clear();
    for (const stream of this.#waiting.splice(0)) stream.finish({ type: "refused", reason });
    this.#events.closed(reason);
  }
}

/** Handles a server's frames. Each method may throw a ConnectionError, which ends the connection. */
interface ServerFrames extends FrameReceiver {
  /** A complete header block: headers or trailers. */
  onFields(stream: number, fields: Fields, ends: boolean): void;
}

/** Input of a client's connection. The header table size announced to the server has to be 0. */
class ClientInput extends FrameInput<ClientHeaderBlock> {
  readonly #receiver: ServerFrames;
  readonly #decode = newStaticFieldsDecoder();

  constructor(receiver: ServerFrames) {
    super(receiver);
    this.#receiver = receiver;
  }

  protected override newBlock(stream: number, flag: number): ClientHeaderBlock {
    return new ClientHeaderBlock(stream, flag);
  }

  protected override onHeaderBlock(stream: number, ends: boolean, block: Buffer): void {
    this.#receiver.onFields(stream, this.#decode(block), ends);
  }
}

const mostHeaderBytes = 1024 * 1024;
/** Limit of frames in one header block, which may be empty. */
const mostHeaderFrames = 500;

class ClientHeaderBlock implements PartialHeaderBlock {
  readonly stream: number;
  readonly flags: number;
  readonly #bytes = new GatheredBytes();
  #frames = 0;

  constructor(stream: number, flags: number) {
    this.stream = stream;
    this.flags = flags;
  }

  add(fragment: Buffer): void {
    if (++this.#frames > mostHeaderFrames) throw tooMuch("header block exceeds the limits");
    this.#bytes.push(fragment);
    if (this.#bytes.size > mostHeaderBytes) throw protocolError(`header block of ${this.#bytes.size} bytes exceeds the limit`);
  }

  take(): Buffer {
    return this.#bytes.take();
  }

  drop(): void {
    this.#bytes.take();
  }
}
