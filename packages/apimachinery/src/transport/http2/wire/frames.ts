import { GatheredBytes } from "./buffers.ts";
import { frameSizeError, protocolError } from "./connection-error.ts";
import { encodeFields } from "./hpack.ts";

/** The frames of HTTP/2. Source: RFC 9113, sections 4 and 6 */
export const frameTypes = {
  data: 0,
  headers: 1,
  priority: 2,
  resetStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const;

export const flags = { endStream: 0x1, ack: 0x1, endHeaders: 0x4, padded: 0x8, priority: 0x20 } as const;

/** Identifiers of SETTINGS parameters. Source: RFC 9113, section 6.5.2 */
export const settings = {
  headerTableSize: 1,
  enablePush: 2,
  maxConcurrentStreams: 3,
  initialWindowSize: 4,
  maxFrameSize: 5,
  maxHeaderListSize: 6,
} as const;

/** The client's connection preface. Source: RFC 9113, section 3.4 */
export const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");
/** Size of a frame header. */
export const headBytes = 9;
/** SETTINGS_MAX_FRAME_SIZE where the peer sent none; this side never sends one. */
export const defaultMaxFrameBytes = 16_384;
/** Initial flow-control window. Source: RFC 9113, section 6.9.2 */
export const defaultWindowBytes = 65_535;
/** Upper bound of a flow-control window. Source: RFC 9113, section 6.9.1 */
export const widestWindow = 2 ** 31 - 1;

/** Writes a frame header to `target` from `at` on. @param length of the payload, in bytes */
export function writeHead(target: Buffer, at: number, length: number, type: number, flag: number, stream: number): void {
  target.writeUIntBE(length, at, 3);
  target[at + 3] = type;
  target[at + 4] = flag;
  target.writeUInt32BE(stream, at + 5);
}

/** @returns a whole frame: header and payload */
export function frame(type: number, flag: number, stream: number, payload: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(headBytes + payload.length);
  writeHead(bytes, 0, payload.length, type, flag, stream);
  payload.copy(bytes, headBytes);
  return bytes;
}

/** @returns a SETTINGS frame with the values in the given order */
export function settingsFrame(values: readonly (readonly [id: number, value: number])[]): Buffer {
  const payload = Buffer.alloc(values.length * 6);
  for (const [i, [id, value]] of values.entries()) {
    payload.writeUInt16BE(id, i * 6);
    payload.writeUInt32BE(value, i * 6 + 2);
  }
  return frame(frameTypes.settings, 0, 0, payload);
}

/** A frame whose payload is one 32-bit number: an error code or a window increment. */
export function numberFrame(type: number, stream: number, value: number): Buffer {
  const payload = Buffer.allocUnsafe(4);
  payload.writeUInt32BE(value, 0);
  return frame(type, 0, stream, payload);
}

/** Called with each frame; `payload` is a view of the received chunk where the frame came in one chunk. */
type FrameHandler = (type: number, flag: number, stream: number, payload: Buffer) => void;

/** Splits chunks into frames. @throws ConnectionError for a frame larger than {@link defaultMaxFrameBytes} */
export function newFrameReader(onFrame: FrameHandler): (chunk: Buffer) => void {
  /** An incomplete frame; its bytes may arrive one at a time. */
  const held = new GatheredBytes();
  let wanted = headBytes;
  return (chunk) => {
    let bytes = chunk;
    if (held.size > 0 || chunk.length < wanted) {
      held.push(chunk);
      if (held.size < wanted) return;
      bytes = held.take();
    }
    let at = 0;
    wanted = headBytes;
    while (bytes.length - at >= headBytes) {
      const length = bytes.readUIntBE(at, 3);
      if (length > defaultMaxFrameBytes) throw frameSizeError(`frame of ${length} bytes exceeds the maximum size`);
      if (bytes.length - at < headBytes + length) {
        wanted = headBytes + length;
        break;
      }
      const payload = bytes.subarray(at + headBytes, at + headBytes + length);
      const head = at;
      at += headBytes + length;
      onFrame(bytes[head + 3]!, bytes[head + 4]!, bytes.readUInt32BE(head + 5) & 0x7fffffff, payload);
    }
    if (at < bytes.length) held.push(bytes.subarray(at));
  };
}

/** Strips the padding of a payload. @throws ConnectionError when the padding exceeds the payload */
export function unpadded(flag: number, payload: Buffer): Buffer {
  if ((flag & flags.padded) === 0) return payload;
  const padding = payload[0] ?? 0;
  if (padding + 1 > payload.length) throw protocolError("padding exceeds the frame");
  return payload.subarray(1, payload.length - padding);
}

const priorityBytes = 5;

/** The part of a header block in a HEADERS frame, without padding and priority. @throws ConnectionError when these exceed the payload */
function headerFragment(flag: number, payload: Buffer): Buffer {
  const part = unpadded(flag, payload);
  if ((flag & flags.priority) === 0) return part;
  if (part.length < priorityBytes) throw protocolError("truncated priority fields");
  return part.subarray(priorityBytes);
}

interface FrameRule {
  /** Whether the frame belongs to a stream or to the connection; undefined: either. */
  readonly about?: "stream" | "connection";
  readonly bytes?: number;
  readonly leastBytes?: number;
}

/** Size and stream requirements of each frame type, independent of the state of the stream. Source: RFC 9113, section 6 */
const rules: Readonly<Record<number, FrameRule>> = {
  [frameTypes.data]: { about: "stream" },
  [frameTypes.headers]: { about: "stream" },
  [frameTypes.priority]: { about: "stream", bytes: 5 },
  [frameTypes.resetStream]: { about: "stream", bytes: 4 },
  [frameTypes.settings]: { about: "connection" },
  [frameTypes.ping]: { about: "connection", bytes: 8 },
  [frameTypes.goAway]: { about: "connection", leastBytes: 8 },
  [frameTypes.windowUpdate]: { bytes: 4 },
  [frameTypes.continuation]: { about: "stream" },
};

/**
 * @param flag the frame's flags
 * @throws ConnectionError for a frame of the wrong size, or with a stream id where none is allowed or the reverse; unknown types
 * pass
 */
export function checkFrame(type: number, flag: number, stream: number, bytes: number): void {
  const rule = rules[type];
  if (rule === undefined) return;
  if (rule.about !== undefined && (rule.about === "stream") !== stream > 0) {
    throw protocolError(`frame of type ${type} on stream ${stream}`);
  }
  if (bytes !== (rule.bytes ?? bytes) || bytes < (rule.leastBytes ?? 0)) {
    throw frameSizeError(`frame of type ${type} with invalid length ${bytes}`);
  }
  if (type === frameTypes.settings && (bytes % 6 !== 0 || ((flag & flags.ack) !== 0 && bytes > 0))) {
    throw frameSizeError(`SETTINGS frame with invalid length ${bytes}`);
  }
}

/** Receives valid frames, except header blocks. Each method may throw a ConnectionError, which ends the connection. */
export interface FrameReceiver {
  /** @param windowBytes size for flow control, padding included */
  onData(stream: number, data: Buffer, windowBytes: number, ends: boolean): void;
  /** @param code of RST_STREAM */
  onReset(stream: number, code: number): void;
  onWindowUpdate(stream: number, increment: number): void;
  onSetting(id: number, value: number): void;
  /** Called after all settings of a frame were reported. */
  onSettings(): void;
  onPing(payload: Buffer): void;
  /** The peer acknowledged a PING. */
  onPong(): void;
  /** @param last the last stream that the peer may have processed */
  onGoAway(last: number, code: number): void;
  /** A frame without effect; also called for a PING and for repeated SETTINGS, before their own callback. */
  onIdleFrame(): void;
}

/** A header block that awaits CONTINUATION frames. */
export interface PartialHeaderBlock {
  readonly stream: number;
  /** Flags of the HEADERS frame. */
  readonly flags: number;
  /** Appends the fragment of a frame. @throws ConnectionError above the limits on frames or bytes */
  add(fragment: Buffer): void;
  /** Returns the complete block, after END_HEADERS. */
  take(): Buffer;
  /** Discards the block when the connection closes. */
  drop(): void;
}

/**
 * Parses the peer's frames and checks what does not depend on the state of streams; the same for both sides of a connection.
 * Source: RFC 9113, sections 4 and 6
 */
export abstract class FrameInput<Block extends PartialHeaderBlock> {
  readonly #receiver: FrameReceiver;
  readonly #read: (chunk: Buffer) => void;
  #hasSettings = false;
  #block: Block | undefined;
  #isClosed = false;

  constructor(receiver: FrameReceiver) {
    this.#receiver = receiver;
    this.#read = newFrameReader((type, flag, stream, payload) => this.#onFrame(type, flag, stream, payload));
  }

  /** Returns what follows the peer's preface in a chunk; only clients send one. */
  protected afterPreface(chunk: Buffer): Buffer {
    return chunk;
  }

  /** Starts a block whose HEADERS frame lacks END_HEADERS. */
  protected abstract newBlock(stream: number, flag: number): Block;

  /** Decodes and reports a complete header block. @param ends END_STREAM was set */
  protected abstract onHeaderBlock(stream: number, ends: boolean, block: Buffer): void;

  /** True after the peer's first SETTINGS. */
  get hasBegun(): boolean {
    return this.#hasSettings;
  }

  /** The incomplete header block, if any. */
  protected get partialBlock(): Block | undefined {
    return this.#block;
  }

  /** @throws ConnectionError or HpackError for invalid input */
  take(chunk: Buffer): void {
    if (this.#isClosed) return;
    const frames = this.afterPreface(chunk);
    if (frames.length > 0) this.#read(frames);
  }

  /** Ignores further input. */
  close(): void {
    this.#isClosed = true;
    this.#block?.drop();
    this.#block = undefined;
  }

  #onFrame(type: number, flag: number, stream: number, payload: Buffer): void {
    if (this.#isClosed) return; // by an earlier frame of the same chunk
    if (this.#block !== undefined && (type !== frameTypes.continuation || stream !== this.#block.stream)) {
      throw protocolError("frame within a header block");
    }
    if (!this.#hasSettings && type !== frameTypes.settings) throw protocolError("the first frame is not SETTINGS");
    checkFrame(type, flag, stream, payload.length);
    switch (type) {
      case frameTypes.data:
        this.#receiver.onData(stream, unpadded(flag, payload), payload.length, (flag & flags.endStream) !== 0);
        break;
      case frameTypes.headers:
        this.#onHeaders(stream, flag, payload);
        break;
      case frameTypes.continuation:
        this.#onContinuation(flag, payload);
        break;
      case frameTypes.resetStream:
        this.#receiver.onReset(stream, payload.readUInt32BE(0));
        break;
      case frameTypes.settings:
        this.#onSettings(flag, payload);
        break;
      case frameTypes.ping:
        this.#receiver.onIdleFrame();
        if ((flag & flags.ack) === 0) this.#receiver.onPing(payload);
        else this.#receiver.onPong();
        break;
      case frameTypes.goAway:
        this.#receiver.onGoAway(payload.readUInt32BE(0) & 0x7fffffff, payload.readUInt32BE(4));
        break;
      case frameTypes.windowUpdate:
        this.#receiver.onWindowUpdate(stream, payload.readUInt32BE(0) & 0x7fffffff);
        break;
      case frameTypes.pushPromise: // a client may not push, and ours disables the server's pushes
        throw protocolError("PUSH_PROMISE frame");
      default: // PRIORITY, which RFC 9113 deprecates, and unknown types
        this.#receiver.onIdleFrame();
    }
  }

  #onHeaders(stream: number, flag: number, payload: Buffer): void {
    const fragment = headerFragment(flag, payload);
    if ((flag & flags.endHeaders) !== 0) {
      this.onHeaderBlock(stream, (flag & flags.endStream) !== 0, fragment);
      return;
    }
    this.#block = this.newBlock(stream, flag);
    this.#block.add(fragment);
  }

  #onContinuation(flag: number, payload: Buffer): void {
    const block = this.#block;
    if (block === undefined) throw protocolError("CONTINUATION frame without a header block");
    block.add(payload);
    if ((flag & flags.endHeaders) === 0 || this.#isClosed) return; // `add` may have closed the connection
    this.#block = undefined;
    this.onHeaderBlock(block.stream, (block.flags & flags.endStream) !== 0, block.take());
  }

  #onSettings(flag: number, payload: Buffer): void {
    if (this.#hasSettings) this.#receiver.onIdleFrame();
    if ((flag & flags.ack) !== 0) return;
    for (let at = 0; at < payload.length; at += 6) {
      this.#receiver.onSetting(payload.readUInt16BE(at), payload.readUInt32BE(at + 2));
    }
    this.#hasSettings = true;
    this.#receiver.onSettings();
  }
}

/**
 * Dynamic table size update to 0, sent before each block: the encoder uses no dynamic table. A client that reduces its table size
 * expects an acknowledging update before the next field (RFC 7541, 4.2); sending it always needs no bookkeeping.
 */
export const noTable = 0x20;

/**
 * Encodes a header block as frames.
 * @param fields name, value, name, value …
 * @param ends whether to set END_STREAM
 * @returns HEADERS, followed by CONTINUATION frames when one frame is not enough
 */
export function framedFields(stream: number, fields: readonly string[], ends: boolean): Buffer {
  const encoded = encodeFields(fields);
  const bytes = Buffer.allocUnsafe(headBytes + 1 + encoded.length);
  bytes[headBytes] = noTable;
  encoded.copy(bytes, headBytes + 1);
  const block = bytes.subarray(headBytes);
  if (block.length > defaultMaxFrameBytes) return framedBlock(stream, block, ends);
  writeHead(bytes, 0, block.length, frameTypes.headers, flags.endHeaders | (ends ? flags.endStream : 0), stream);
  return bytes;
}

/** Frames an encoded header block, as {@link framedFields}. */
export function framedBlock(stream: number, block: Buffer, ends: boolean): Buffer {
  const end = ends ? flags.endStream : 0;
  if (block.length <= defaultMaxFrameBytes) return frame(frameTypes.headers, flags.endHeaders | end, stream, block);
  const frames: Buffer[] = [];
  for (let at = 0; at < block.length; at += defaultMaxFrameBytes) {
    const part = block.subarray(at, at + defaultMaxFrameBytes);
    const last = at + part.length === block.length ? flags.endHeaders : 0;
    const [type, flag] = at === 0 ? [frameTypes.headers, end | last] : [frameTypes.continuation, last];
    frames.push(frame(type, flag, stream, part));
  }
  return Buffer.concat(frames);
}
