/** Builders of client frames for tests, valid or not. Source: RFC 9113, section 6; RFC 7541, section 6.2.2 */
import { flags, frame, frameTypes, numberFrame } from "../wire/frames.ts";

export type Field = readonly [name: string, value: string];

/** RFC 9113, section 7. */
export const errorNames = [
  "NO_ERROR",
  "PROTOCOL_ERROR",
  "INTERNAL_ERROR",
  "FLOW_CONTROL_ERROR",
  "SETTINGS_TIMEOUT",
  "STREAM_CLOSED",
  "FRAME_SIZE_ERROR",
  "REFUSED_STREAM",
  "CANCEL",
  "COMPRESSION_ERROR",
  "CONNECT_ERROR",
  "ENHANCE_YOUR_CALM",
  "INADEQUATE_SECURITY",
  "HTTP_1_1_REQUIRED",
] as const;

export const endOfBoth = flags.endStream | flags.endHeaders;

/** Encodes each field as a literal without indexing and without validation, unlike the product's encoder. */
export function literalBlock(fields: readonly Field[]): Buffer {
  return Buffer.concat(fields.flatMap(([name, value]) => [Buffer.of(0), lengthAnd(name), lengthAnd(value)]));
}

/** Same as {@link literalBlock}, with incremental indexing. */
export function indexedBlock(fields: readonly Field[]): Buffer {
  return Buffer.concat(fields.flatMap(([name, value]) => [Buffer.of(0x40), lengthAnd(name), lengthAnd(value)]));
}

function lengthAnd(text: string): Buffer {
  const octets = Buffer.from(text, "latin1");
  const length = [Math.min(octets.length, 127)];
  if (octets.length >= 127) {
    let rest = octets.length - 127;
    for (; rest >= 128; rest = Math.floor(rest / 128)) length.push((rest % 128) + 128);
    length.push(rest);
  }
  return Buffer.concat([Buffer.from(length), octets]);
}

/** Header fields of a valid request. */
export function requestFields(method: string, path: string, more: readonly Field[] = []): Field[] {
  return [[":method", method], [":scheme", "https"], [":authority", "localhost"], [":path", path], ...more];
}

export function headersFrame(stream: number, fields: readonly Field[] | Buffer, flag: number = endOfBoth): Buffer {
  return frame(frameTypes.headers, flag, stream, fields instanceof Buffer ? fields : literalBlock(fields as readonly Field[]));
}

/** A complete request: HEADERS with END_HEADERS and END_STREAM. */
export function getFrame(stream: number, path = "/", more: readonly Field[] = []): Buffer {
  return headersFrame(stream, requestFields("GET", path, more));
}

/** HEADERS of a request with a body. */
export function postFrame(stream: number, path = "/", more: readonly Field[] = []): Buffer {
  return headersFrame(stream, requestFields("POST", path, more), flags.endHeaders);
}

/** @param block a part of a header block, encoded */
export function continuationFrame(stream: number, block: Buffer, flag: number = flags.endHeaders): Buffer {
  return frame(frameTypes.continuation, flag, stream, block);
}

/** @param payload a text is Latin-1; without padding */
export function dataFrame(stream: number, payload: Buffer | string, flag = 0): Buffer {
  return frame(frameTypes.data, flag, stream, typeof payload === "string" ? Buffer.from(payload, "latin1") : payload);
}

/** DATA with `padding` octets of padding. */
export function paddedDataFrame(stream: number, payload: string, padding: number, flag = 0): Buffer {
  const bytes = Buffer.concat([Buffer.of(padding), Buffer.from(payload, "latin1"), Buffer.alloc(padding)]);
  return frame(frameTypes.data, flags.padded | flag, stream, bytes);
}

/** RST_STREAM. @param code default CANCEL */
export function resetFrame(stream: number, code = 8): Buffer {
  return numberFrame(frameTypes.resetStream, stream, code);
}

export function windowFrame(stream: number, increment: number): Buffer {
  return numberFrame(frameTypes.windowUpdate, stream, increment);
}

/** @param payload eight octets */
export function pingFrame(payload: string, flag = 0): Buffer {
  return frame(frameTypes.ping, flag, 0, Buffer.from(payload, "latin1"));
}

export function priorityFrame(stream: number, dependsOn: number): Buffer {
  return frame(frameTypes.priority, 0, stream, priorityOctets(dependsOn));
}

/** Payload of PRIORITY, which also precedes the block of HEADERS with the PRIORITY flag. */
export function priorityOctets(dependsOn: number): Buffer {
  const octets = Buffer.alloc(5);
  octets.writeUInt32BE(dependsOn, 0);
  octets[4] = 15;
  return octets;
}

/** @param lastStream the last stream that the sender has handled or will handle @param code default NO_ERROR */
export function goAwayFrame(lastStream: number, code = 0): Buffer {
  const payload = Buffer.alloc(8);
  payload.writeUInt32BE(lastStream, 0);
  payload.writeUInt32BE(code, 4);
  return frame(frameTypes.goAway, 0, 0, payload);
}
