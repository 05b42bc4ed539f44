import { defaultMaxFrameBytes, flags, frame, frameTypes, headBytes, writeHead } from "./frames.ts";
import { encodeFields } from "./hpack-encoder.ts";

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
