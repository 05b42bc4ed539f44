/**
 * The few frames of HTTP/2 that a load generator needs: requests, and answers of which it wants the status and counts the
 * data. Without the compression's memory: we announce a table of 0 bytes and use none.
 * Source: RFC 9113 (frames), RFC 7541 (header fields)
 */
import {
  defaultMaxFrameBytes,
  defaultWindowBytes,
  flags,
  frame,
  frameTypes,
  headBytes,
  numberFrame,
  preface,
  settings,
  settingsFrame,
} from "@coxswain/apimachinery/http2/frames";
import { encodeFields } from "@coxswain/apimachinery/http2/hpack-encoder";
import { newMemorylessDecoder } from "@coxswain/apimachinery/http2/memoryless-decoder";

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  /** Valid until the call returns that brought it. */
  readonly payload: Buffer;
}

const widestWindow = 2 ** 31 - 1;
const noBytes = Buffer.alloc(0);

/** What a client sends first: the preface, and windows as wide as they may be. */
export function opening(): Buffer {
  return Buffer.concat([
    preface,
    settingsFrame([
      [settings.headerTableSize, 0],
      [settings.initialWindowSize, widestWindow],
    ]),
    widen(widestWindow - defaultWindowBytes),
  ]);
}

/** Gives the connection's window back what was taken from it. */
export function widen(bytes: number): Buffer {
  return numberFrame(frameTypes.windowUpdate, 0, bytes);
}

/** The pseudo headers but the path. @returns what {@link encodeRequest} begins with */
export function encodeMethod(method: string, authority: string): Buffer {
  return encodeFields([":scheme", "https", ":method", method, ":authority", authority]);
}

/** @param headers names in lower case */
export function encodeHeaders(headers: Readonly<Record<string, string>>): Buffer {
  return encodeFields(Object.entries(headers).flat());
}

/** @param before of {@link encodeMethod} @param after of {@link encodeHeaders} @param body undefined when there is none */
export function encodeRequest(
  stream: number,
  { before, path, after, body }: { before: Buffer; path: string; after: Buffer; body?: Buffer | undefined },
): Buffer[] {
  const flag = flags.endHeaders | (body === undefined ? flags.endStream : 0);
  const fields = Buffer.concat([before, encodeFields([":path", path]), after]);
  const frames = [frame(frameTypes.headers, flag, stream, fields)];
  for (let at = 0; body !== undefined && (at === 0 || at < body.length); at += defaultMaxFrameBytes) {
    const end = at + defaultMaxFrameBytes;
    frames.push(frame(frameTypes.data, end >= body.length ? flags.endStream : 0, stream, body.subarray(at, end)));
  }
  return frames;
}

const decodeFields = newMemorylessDecoder();

/** The status, which comes before all other headers; what follows it is not looked at. @throws Error when it is not there */
export function statusOf({ payload }: Frame): number {
  let at = 0;
  while (((payload[at] ?? 0) & 0xe0) === 0x20) at++; // the size of the compression's memory: 0 is told in one octet
  const first = payload[at] ?? 0;
  if (first === 0x88) return 200;
  const valueBytes = (payload[at + 1] ?? 0) & 0x7f;
  const field = payload.subarray(at, first >= 0x80 ? at + 1 : at + 2 + valueBytes);
  return Number(decodeFields(field).get(":status"));
}

/** The settings of a server that somebody asks for. */
export function decodeSettings({ payload }: Frame): Map<number, number> {
  const values = new Map<number, number>();
  for (let at = 0; at + 6 <= payload.length; at += 6) values.set(payload.readUInt16BE(at), payload.readUInt32BE(at + 2));
  return values;
}

/**
 * @param onFrame called for each whole frame; of data only for the one that ends its stream, without payload
 * @param onData for each piece of data, a view that is valid until it returns. Data is not put together: copies of it, and
 * their collection, would be most of what the client does.
 * @returns takes what comes in
 */
export function newFrameReader(
  onFrame: (frame: Frame) => void,
  onData: (stream: number, piece: Buffer) => void,
): (chunk: Buffer) => void {
  const head = Buffer.alloc(headBytes);
  let headSeen = 0;
  let left = 0;
  let kept = noBytes;
  return (chunk) => {
    for (let at = 0; ; ) {
      if (headSeen < headBytes) {
        const copied = chunk.copy(head, headSeen, at);
        headSeen += copied;
        at += copied;
        if (headSeen < headBytes) return;
        left = head.readUIntBE(0, 3);
      }
      const piece = chunk.subarray(at, at + left);
      at += piece.length;
      left -= piece.length;
      const [type = 0, flag = 0] = [head[3], head[4]];
      const stream = head.readUInt32BE(5);
      const isData = type === frameTypes.data;
      if (isData) onData(stream, piece);
      else if (left > 0 || kept.length > 0) kept = Buffer.concat([kept, piece]);
      if (left > 0) return;
      headSeen = 0;
      const payload = isData ? noBytes : kept.length > 0 ? kept : piece;
      kept = noBytes;
      if (!isData || (flag & flags.endStream) !== 0) onFrame({ type, flags: flag, stream, payload });
    }
  };
}
