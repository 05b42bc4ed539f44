import { frameSizeError, protocolError } from "./connection-error.ts";
import { GatheredBytes } from "./gathered-bytes.ts";

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

export const settings = {
  headerTableSize: 1,
  enablePush: 2,
  maxConcurrentStreams: 3,
  initialWindowSize: 4,
  maxFrameSize: 5,
  maxHeaderListSize: 6,
} as const;

export const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");
export const headBytes = 9;
/** What nobody may exceed who was not told otherwise; we tell nobody. */
export const defaultMaxFrameBytes = 16_384;
export const defaultWindowBytes = 65_535;
export const widestWindow = 2 ** 31 - 1;

/** Writes the head of a frame to the front of `target`, whose rest is the payload. */
export function writeHead(target: Buffer, at: number, length: number, type: number, flag: number, stream: number): void {
  target.writeUIntBE(length, at, 3);
  target[at + 3] = type;
  target[at + 4] = flag;
  target.writeUInt32BE(stream, at + 5);
}

export function frame(type: number, flag: number, stream: number, payload: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(headBytes + payload.length);
  writeHead(bytes, 0, payload.length, type, flag, stream);
  payload.copy(bytes, headBytes);
  return bytes;
}

export function settingsFrame(values: readonly (readonly [id: number, value: number])[]): Buffer {
  const payload = Buffer.alloc(values.length * 6);
  for (const [i, [id, value]] of values.entries()) {
    payload.writeUInt16BE(id, i * 6);
    payload.writeUInt32BE(value, i * 6 + 2);
  }
  return frame(frameTypes.settings, 0, 0, payload);
}

/** A frame whose payload is one number: an error's code, an increment of a window. */
export function numberFrame(type: number, stream: number, value: number): Buffer {
  const payload = Buffer.allocUnsafe(4);
  payload.writeUInt32BE(value, 0);
  return frame(type, 0, stream, payload);
}

export type FrameHandler = (type: number, flag: number, stream: number, payload: Buffer) => void;

/** Cuts chunks into frames. @throws ConnectionError for a frame that is larger than it may be */
export function newFrameReader(onFrame: FrameHandler): (chunk: Buffer) => void {
  /** The beginning of a frame, which may come octet by octet. */
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

/** A payload without what fills it up. @throws ConnectionError when there is more of that than payload */
export function unpadded(flag: number, payload: Buffer): Buffer {
  if ((flag & flags.padded) === 0) return payload;
  const padding = payload[0] ?? 0;
  if (padding + 1 > payload.length) throw protocolError("a frame is all padding");
  return payload.subarray(1, payload.length - padding);
}
