import type { Duplex } from "node:stream";
import { protocolError, windowError } from "../wire/connection-error.ts";
import { defaultMaxFrameBytes, defaultWindowBytes, flags, frame, frameTypes, widestWindow } from "../wire/frames.ts";

/** How long a ping reply waits to be sent with other frames. Servers allow several seconds. */
const pongDelayMs = 50;
/** With this many pending replies they are sent at once. */
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
    if (bytes < defaultMaxFrameBytes || bytes > largestFrameBytes) throw protocolError(`frames of ${bytes} bytes`);
    this.#frameBytes = bytes;
  }

  /** Applies a WINDOW_UPDATE of the connection. @returns whether streams may have waited for it @throws ConnectionError */
  widen(increment: number): boolean {
    if (increment === 0) throw protocolError("a window that grows by nothing");
    const wasShut = this.window <= 0;
    this.window += increment;
    if (this.window > widestWindow) throw windowError("a window that is too wide");
    return wasShut;
  }

  /** Applies SETTINGS_INITIAL_WINDOW_SIZE. @returns the change for the windows of open streams @throws ConnectionError */
  resizeStreams(bytes: number): number {
    if (bytes > widestWindow) throw windowError("a window that is too wide");
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
   * request: a write of their own wakes etcd, which delays the events on their way to watchers.
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
    if (!this.#socket.destroyed) this.#socket.write(frames.length === 1 ? (frames[0] as Buffer) : Buffer.concat(frames));
  };

  /** To be called when the connection is closed. */
  close(): void {
    clearTimeout(this.#pongTimer);
  }
}
