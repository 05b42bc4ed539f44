import { defaultMaxFrameBytes, flags, frame, frameTypes } from "./frames.ts";
import { encodeFields } from "./hpack-encoder.ts";

/**
 * @param fields name, value, name, value …
 * @param ends whether they are all of the answer
 * @returns HEADERS, and CONTINUATION where one frame is not enough
 */
export function framedFields(stream: number, fields: readonly string[], ends: boolean): Buffer {
  const block = encodeFields(fields);
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
