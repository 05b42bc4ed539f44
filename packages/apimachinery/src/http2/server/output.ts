import type { Duplex } from "node:stream";
import { protocolError, windowError } from "../wire/connection-error.ts";
import { defaultMaxFrameBytes, defaultWindowBytes, widestWindow } from "../wire/frames.ts";
import { giveSlabBack, largestSlabBytes, takeSlab } from "../wire/slabs.ts";
import type { ServerStream } from "./stream.ts";

/** Bytes of one stream before the next one is served: a large list does not delay watch events. */
const quantumBytes = 4 * defaultMaxFrameBytes;

/**
 * Output of a connection. All frames of one event-loop turn go out in one write, and the next write starts when that one is done.
 * Until then data stays queued in its stream.
 */
export class ServerOutput {
  readonly #socket: Duplex;
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

  constructor(socket: Duplex, onIdle: () => void) {
    this.#socket = socket;
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
    if (increment === 0) throw protocolError("a window that grows by nothing");
    const wasShut = this.#window <= 0;
    this.#window += increment;
    if (this.#window > widestWindow) throw windowError("a window that is too wide");
    if (wasShut) for (const stream of streams()) if (stream.unsent > 0) this.ready(stream);
  }

  /** Applies SETTINGS_INITIAL_WINDOW_SIZE, also to open streams. @throws ConnectionError */
  resizeStreams(bytes: number, streams: readonly ServerStream[]): void {
    if (bytes > widestWindow) throw windowError("a window that is too wide");
    const more = bytes - this.#streamWindow;
    this.#streamWindow = bytes;
    for (const stream of streams) {
      stream.sendWindow += more;
      if (stream.sendWindow > widestWindow) throw windowError("a stream's window that is too wide");
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
      const stream = streams[next] as ServerStream;
      const [before, start] = [stream.unsent, at];
      at = stream.fill(slab, at, Math.min(this.#window, quantumBytes));
      this.#window -= before - stream.unsent;
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
