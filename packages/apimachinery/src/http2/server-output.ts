import type { Duplex } from "node:stream";
import { protocolError, windowError } from "./connection-error.ts";
import { defaultMaxFrameBytes, defaultWindowBytes, widestWindow } from "./frames.ts";
import type { ServerStream } from "./server-stream.ts";
import { giveSlabBack, largestSlabBytes, takeSlab } from "./slabs.ts";

/** So much of one stream, then of the next: a list does not hold up an event. */
const quantumBytes = 4 * defaultMaxFrameBytes;

/**
 * What a connection sends: all frames of one turn of the loop in one write, and the next write when that one is done. Until
 * then streams keep what they have.
 */
export class ServerOutput {
  readonly #socket: Duplex;
  /** Called when a write is done, or nothing was to be written. */
  readonly #onIdle: () => void;
  #control: Buffer[] = [];
  #controlBytes = 0;
  #streams: ServerStream[] = [];
  /** How many bytes of data the client takes on all its streams. */
  #window = defaultWindowBytes;
  /** And on each new one. */
  #streamWindow = defaultWindowBytes;
  #isScheduled = false;
  #slab: Buffer | undefined;

  constructor(socket: Duplex, onIdle: () => void) {
    this.#socket = socket;
    this.#onIdle = onIdle;
  }

  /** Frames that wait for nothing but the socket. */
  get waiting(): number {
    return this.#control.length;
  }

  /** Is all written that can be? */
  get isIdle(): boolean {
    return this.#slab === undefined && !this.#isScheduled;
  }

  get streamWindow(): number {
    return this.#streamWindow;
  }

  /** The client takes more. @param streams all of the connection @throws ConnectionError */
  widen(increment: number, streams: () => readonly ServerStream[]): void {
    if (increment === 0) throw protocolError("a window that grows by nothing");
    const wasShut = this.#window <= 0;
    this.#window += increment;
    if (this.#window > widestWindow) throw windowError("a window that is too wide");
    if (wasShut) for (const stream of streams()) if (stream.unsent > 0) this.ready(stream);
  }

  /** The client takes so much of each stream, also of those that are open. @throws ConnectionError */
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

  /** A frame that no window holds back. Goes before what streams send, whatever its turn. */
  control(frame: Buffer): void {
    this.#control.push(frame);
    this.#controlBytes += frame.length;
    this.#schedule();
  }

  ready(stream: ServerStream): void {
    if (!stream.isListed) {
      stream.isListed = true;
      this.#streams.push(stream);
    }
    this.#schedule();
  }

  /** At the end of the turn; the next tick would be too early: node runs those after each thing that one read brought. */
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

  /** @returns how large a slab has to be: for what can go out, but no larger than those that are used again */
  #sendable(): number {
    let bytes = this.#controlBytes;
    for (const stream of this.#streams) {
      bytes += stream.sendable;
      if (bytes >= largestSlabBytes) break;
    }
    // Headers cannot be cut.
    return Math.max(Math.min(bytes, largestSlabBytes), this.#controlBytes + (this.#streams[0]?.headerBytes ?? 0));
  }

  /** @returns how much it wrote */
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
