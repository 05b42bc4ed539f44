import protobuf from "protobufjs/minimal.js";
import type { Steps } from "../../process/event-loop/steps.ts";
import { messageOf } from "../errors/message.ts";
import { badRequest } from "../errors/status-error.ts";
import type { KubeObject } from "../meta/types.ts";
import { canonical, parseJson } from "./json.ts";
import { protobufMediaType } from "./negotiate.ts";
import { decodeProtobuf, decodeProtobufInSteps, varintBytes, writeVarint } from "./protobuf.ts";
import { type ReadOptions, readString } from "./protobuf-decode.ts";

/** Maximum size of a frame that a decoder accepts. */
const maxFrameBytes = 64 * 1024 * 1024;

/**
 * One watch event in wire format: a line of JSON, or for protobuf a four-byte big-endian length and a WatchEvent message
 * with the object in its envelope.
 * @param type ADDED, MODIFIED, DELETED, BOOKMARK or ERROR
 * @param objectBytes the encoded object, JSON without trailing newline
 */
export function frameWatchEvent(type: string, objectBytes: Buffer, mediaType: string): Buffer {
  if (mediaType !== protobufMediaType) {
    const head = `{"type":"${type}","object":`;
    const frame = Buffer.allocUnsafe(head.length + objectBytes.length + 2);
    frame.write(head, 0, "latin1");
    objectBytes.copy(frame, head.length);
    frame.write("}\n", head.length + objectBytes.length, "latin1");
    return frame;
  }
  const objectField = 1 + varintBytes(objectBytes.length) + objectBytes.length;
  const size = 2 + type.length + 1 + varintBytes(objectField) + objectField;
  const frame = Buffer.allocUnsafe(4 + size);
  let at = frame.writeUInt32BE(size);
  frame[at++] = 0x0a;
  frame[at++] = type.length;
  at += frame.write(type, at, "latin1");
  frame[at++] = 0x12;
  at = writeVarint(frame, at, objectField);
  frame[at++] = 0x0a;
  at = writeVarint(frame, at, objectBytes.length);
  objectBytes.copy(frame, at);
  return frame;
}

export interface WatchEvent {
  readonly type: string;
  /** Canonical when the kind is built in; a Status when `type` is ERROR. */
  readonly object: KubeObject;
}

/** Incremental decoder: `push` takes chunks of a watch response and returns the completed events. */
export class WatchEventDecoder {
  readonly #protobuf: boolean;
  readonly #options: ReadOptions | undefined;
  #rest: Buffer[] = [];
  #size = 0;

  /** @param options of protobuf objects */
  constructor(mediaType: string, options?: ReadOptions) {
    this.#protobuf = mediaType.startsWith(protobufMediaType);
    this.#options = options;
  }

  /** @throws StatusError 400 for malformed events and for events above 64 MiB */
  push(chunk: Buffer): WatchEvent[] {
    if (this.#protobuf) return this.frames(chunk).map((frame) => this.read(frame));
    const events: WatchEvent[] = [];
    this.#take(chunk, (bytes) => readLines(bytes, events));
    return events;
  }

  /** The frames that are complete with this chunk of a protobuf response, for `read` and `reading`. */
  frames(chunk: Buffer): Buffer[] {
    const frames: Buffer[] = [];
    this.#take(chunk, (bytes) => this.#readFrames(bytes, frames));
    return frames;
  }

  read(frame: Buffer): WatchEvent {
    const { type, raw } = openEvent(frame);
    return { type, object: decodeProtobuf(raw, undefined, this.#options) };
  }

  /** As `read`, in steps for large objects. */
  *reading(frame: Buffer): Steps<WatchEvent> {
    const { type, raw } = openEvent(frame);
    return { type, object: yield* decodeProtobufInSteps(raw, undefined, this.#options) };
  }

  /** @param readFrom returns the number of bytes that it has used */
  #take(chunk: Buffer, readFrom: (bytes: Buffer) => number): void {
    this.#rest.push(chunk);
    this.#size += chunk.length;
    if (!this.#protobuf && !chunk.includes(0x0a)) {
      this.#refuseHuge(this.#size);
      return;
    }
    const bytes = this.#rest.length === 1 ? chunk : Buffer.concat(this.#rest, this.#size);
    const used = readFrom(bytes);
    this.#rest = used === bytes.length ? [] : [bytes.subarray(used)];
    this.#size = bytes.length - used;
  }

  /** Buffered bytes of an incomplete event. */
  get pendingBytes(): number {
    return this.#size;
  }

  #readFrames(bytes: Buffer, frames: Buffer[]): number {
    let at = 0;
    while (bytes.length - at >= 4) {
      const length = bytes.readUInt32BE(at);
      this.#refuseHuge(length);
      if (bytes.length - at - 4 < length) break;
      frames.push(bytes.subarray(at + 4, at + 4 + length));
      at += 4 + length;
    }
    return at;
  }

  #refuseHuge(length: number): void {
    if (length > maxFrameBytes) throw badRequest("object to decode was longer than maximum allowed size");
  }
}

function readLines(bytes: Buffer, events: WatchEvent[]): number {
  let at = 0;
  for (let end = bytes.indexOf(0x0a); end >= 0; end = bytes.indexOf(0x0a, at)) {
    const line = bytes.subarray(at, end);
    at = end + 1;
    if (line.length === 0) continue;
    const event = parseJson(line) as { type?: unknown; object?: unknown }; // cast: the next line checks both fields
    if (typeof event?.type !== "string" || typeof event.object !== "object" || event.object === null) {
      throw badRequest("unable to decode an event from the watch stream");
    }
    events.push({ type: event.type, object: canonical(event.object) as KubeObject }); // cast: an object, by the check above; the server is trusted with its fields
  }
  return at;
}

const noBytes = new Uint8Array();

/** WatchEvent {type = 1, object = 2 {raw = 1}}. Not read by descriptor, which has JSON for `raw`; here it is an envelope. */
function openEvent(bytes: Buffer): { readonly type: string; readonly raw: Uint8Array } {
  try {
    const reader = protobuf.Reader.create(bytes);
    let type = "";
    let raw: Uint8Array = noBytes;
    while (reader.pos < reader.len) {
      const tag = reader.uint32();
      if (tag === 10) type = readString(reader);
      else if (tag === 18) raw = rawOf(reader);
      else throw new Error(`unexpected field ${tag >>> 3}`);
    }
    return { type, raw };
  } catch (err) {
    throw badRequest(`unable to decode an event from the watch stream: ${messageOf(err)}`);
  }
}

/** Reads RawExtension {raw = 1}. */
function rawOf(reader: protobuf.Reader): Uint8Array {
  const end = reader.uint32() + reader.pos;
  if (end > reader.len) throw new RangeError("unexpected EOF");
  const raw = reader.pos < end && reader.uint32() === 10 ? reader.bytes() : noBytes;
  if (reader.pos > end) throw new RangeError("unexpected EOF");
  reader.pos = end;
  return raw;
}
