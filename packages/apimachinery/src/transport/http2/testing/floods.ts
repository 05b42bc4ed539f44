/** Floods of frames, for tests of one connection and for attacks on a whole server. */
import { flags, frame, frameTypes, settings, settingsFrame } from "../wire/frames.ts";
import {
  continuationFrame,
  dataFrame,
  getFrame,
  headersFrame,
  literalBlock,
  pingFrame,
  postFrame,
  priorityFrame,
  requestFields,
  resetFrame,
  windowFrame,
} from "./raw-frames.ts";

interface Flood {
  /** Sent once. */
  readonly first?: readonly Buffer[];
  /** Sent repeatedly. */
  readonly again: Buffer;
  /** Fewer repetitions than usual, because each is large. */
  readonly times?: number;
}

/** Headers whose block is not finished. */
export const unfinished = headersFrame(1, literalBlock(requestFields("GET", "/")), flags.endStream);

const emptyContinuation = continuationFrame(1, Buffer.alloc(0), 0);
const manySettings = settingsFrame(Array.from({ length: 270 }, (_, i) => [settings.initialWindowSize, i] as const));

/** `/hold` should be answered late: some floods are meant for an open stream. */
export const floods: Readonly<Record<string, Flood>> = {
  "SETTINGS without content": { again: settingsFrame([]) },
  "SETTINGS that change every window": { first: [getFrame(1, "/hold")], again: manySettings, times: 2000 },
  "acknowledgements of nothing": { again: frame(frameTypes.settings, flags.ack, 0, Buffer.alloc(0)) },
  PING: { again: pingFrame("12345678") },
  "DATA without content": { first: [postFrame(1, "/hold")], again: dataFrame(1, "") },
  "DATA of a stream that is closed": { first: [postFrame(1), resetFrame(1)], again: dataFrame(1, "") },
  "CONTINUATION without content": { first: [unfinished], again: emptyContinuation },
  "CONTINUATION without end": { first: [unfinished], again: continuationFrame(1, literalBlock([["a", "b".repeat(16_000)]]), 0) },
  PRIORITY: { again: priorityFrame(1, 3) },
  "WINDOW_UPDATE of the connection": { again: windowFrame(0, 1) },
  "WINDOW_UPDATE of a stream": { first: [getFrame(1, "/hold")], again: windowFrame(1, 1) },
  "WINDOW_UPDATE of a stream that is closed": { first: [getFrame(1), resetFrame(1)], again: windowFrame(1, 1) },
  "RST_STREAM of a stream that is closed": { first: [getFrame(1), resetFrame(1)], again: resetFrame(1) },
  "HEADERS of a stream that is closed": { first: [getFrame(1), resetFrame(1)], again: getFrame(1) },
  "frames of an unknown type": { again: frame(0xbb, 0, 0, Buffer.alloc(0)) },
};

/** Frames for each of `count` streams in turn, beginning with the client's stream number `from` (0 is stream 1). */
export function onStreams(from: number, count: number, frames: (stream: number) => readonly Buffer[]): Buffer {
  return Buffer.concat(Array.from({ length: count }, (_, i) => frames(1 + 2 * (from + i))).flat());
}
