/**
 * Minimal HTTP/2 framing for a load generator: encodes requests; of responses only the status is decoded and data are passed on.
 * Without HPACK's dynamic table: SETTINGS_HEADER_TABLE_SIZE is 0.
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
} from "@coxswain/apimachinery/transport/http2/wire/frames";
import { encodeFields, newStaticFieldsDecoder } from "@coxswain/apimachinery/transport/http2/wire/hpack";

export interface Frame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  /** Valid only during the callback. */
  readonly payload: Buffer;
}

const widestWindow = 2 ** 31 - 1;
const noBytes = Buffer.alloc(0);

/** Client connection preface, and settings with maximum windows. */
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

/** WINDOW_UPDATE that restores the connection's window. */
export function widen(bytes: number): Buffer {
  return numberFrame(frameTypes.windowUpdate, 0, bytes);
}

/** Encodes the pseudo headers except :path. @returns the first part for {@link encodeRequest} */
export function encodeMethod(method: string, authority: string): Buffer {
  return encodeFields([":scheme", "https", ":method", method, ":authority", authority]);
}

/** @param headers lower-case names */
export function encodeHeaders(headers: Readonly<Record<string, string>>): Buffer {
  return encodeFields(Object.entries(headers).flat());
}

/** @param before from {@link encodeMethod} @param after from {@link encodeHeaders} @param body undefined for none */
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

const decodeFields = newStaticFieldsDecoder();

/** The :status, always the first header; later headers are not decoded. @throws Error when it is missing */
export function statusOf({ payload }: Frame): number {
  let at = 0;
  while (((payload[at] ?? 0) & 0xe0) === 0x20) at++; // dynamic table size update; size 0 takes one octet
  const first = payload[at] ?? 0;
  if (first === 0x88) return 200;
  const valueBytes = (payload[at + 1] ?? 0) & 0x7f;
  const field = payload.subarray(at, first >= 0x80 ? at + 1 : at + 2 + valueBytes);
  return Number(decodeFields(field).get(":status"));
}

/** Parameters of a SETTINGS frame. */
export function decodeSettings({ payload }: Frame): Map<number, number> {
  const values = new Map<number, number>();
  for (let at = 0; at + 6 <= payload.length; at += 6) values.set(payload.readUInt16BE(at), payload.readUInt32BE(at + 2));
  return values;
}

/**
 * @param onFrame called for each complete frame; for DATA only for the one with END_STREAM, without payload
 * @param onData called for each chunk of DATA, a view valid during the call. Chunks are not assembled: copying and garbage
 *   collection would dominate the client's CPU time.
 * @returns a function that accepts received bytes
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
