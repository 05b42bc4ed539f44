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
      if (length > defaultMaxFrameBytes) throw frameSizeError(`a frame of ${length} bytes`);
      if (bytes.length - at < headBytes + length) {
        wanted = headBytes + length;
        break;
      }
      const payload = bytes.subarray(at + headBytes, at + headBytes + length);
      const head = at;
      at += headBytes + length;
      onFrame(bytes[head + 3] as number, bytes[head + 4] as number, bytes.readUInt32BE(head + 5) & 0x7fffffff, payload);
    }
    if (at < bytes.length) held.push(bytes.subarray(at));
  };
}

/** Strips the padding of a payload. @throws ConnectionError when the padding exceeds the payload */
export function unpadded(flag: number, payload: Buffer): Buffer {
  if ((flag & flags.padded) === 0) return payload;
  const padding = payload[0] ?? 0;
  if (padding + 1 > payload.length) throw protocolError("a frame is all padding");
  return payload.subarray(1, payload.length - padding);
}

const priorityBytes = 5;

/** The part of a header block in a HEADERS frame, without padding and priority. @throws ConnectionError when these exceed the payload */
export function headerFragment(flag: number, payload: Buffer): Buffer {
  const part = unpadded(flag, payload);
  if ((flag & flags.priority) === 0) return part;
  if (part.length < priorityBytes) throw protocolError("a priority that is cut off");
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
    throw protocolError(`a frame of type ${type} on stream ${stream}`);
  }
  if (bytes !== (rule.bytes ?? bytes) || bytes < (rule.leastBytes ?? 0)) {
    throw frameSizeError(`a frame of type ${type} with ${bytes} bytes`);
  }
  if (type === frameTypes.settings && (bytes % 6 !== 0 || ((flag & flags.ack) !== 0 && bytes > 0))) {
    throw frameSizeError(`settings of ${bytes} bytes`);
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
