import { frameSizeError, protocolError } from "./connection-error.ts";
import { frameTypes } from "./frames.ts";

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
 * @throws ConnectionError for a frame of the wrong size, or with a stream id where none is allowed or the reverse; unknown types
 * pass
 */
export function checkFrame(type: number, stream: number, bytes: number): void {
  const rule = rules[type];
  if (rule === undefined) return;
  if (rule.about !== undefined && (rule.about === "stream") !== stream > 0) {
    throw protocolError(`a frame of type ${type} on stream ${stream}`);
  }
  if (bytes !== (rule.bytes ?? bytes) || bytes < (rule.leastBytes ?? 0)) {
    throw frameSizeError(`a frame of type ${type} with ${bytes} bytes`);
  }
}
