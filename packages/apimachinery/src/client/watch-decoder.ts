import { protobufMediaType } from "../objects/codec/negotiate.ts";
import type { ReadOptions } from "../objects/codec/protobuf-decode.ts";
import { WatchEventDecoder } from "../objects/codec/stream.ts";
import { StatusError } from "../objects/errors/status-error.ts";
import type { Status } from "../objects/meta/types.ts";
import { Turns } from "../process/event-loop/turns.ts";
import type { ObjectEvent } from "../watch-stream/event.ts";
import { dropManagedFields, parseWire } from "./wire-json.ts";

/** An event that does not conform to the API. A watch that is resumed would receive it again. */
export class BadEventError extends Error {}

/**
 * Decodes watch events, one JSON document per line. Reads on demand, with backpressure.
 * @throws StatusError for an ERROR event; BadEventError; Error when the stream ends within an event
 */
export async function* decodeWatchStream<T>(
  body: AsyncIterable<Buffer>,
  signal: AbortSignal,
  options?: ReadOptions,
): AsyncGenerator<ObjectEvent<T>> {
  let rest: Buffer[] = [];
  try {
    for await (const chunk of body) {
      let start = 0;
      for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, start)) {
        const line =
          rest.length === 0
            ? chunk.toString("utf8", start, end)
            : Buffer.concat([...rest, chunk.subarray(start, end)]).toString("utf8");
        rest = [];
        start = end + 1;
        if (line !== "") yield parseEvent<T>(line, options);
      }
      if (start < chunk.length) rest.push(chunk.subarray(start));
    }
  } catch (err) {
    throw signal.aborted ? signal.reason : err;
  }
  signal.throwIfAborted();
  const left = Buffer.concat(rest).toString("utf8").trim();
  if (left === "") return;
  let last: ObjectEvent<T>;
  try {
    last = parseEvent<T>(left, options); // the server omitted the final newline
  } catch (err) {
    if (err instanceof StatusError) throw err;
    throw new Error("the watch ended in the middle of an event");
  }
  yield last;
}

/** Size from which decoding an object may take tens of milliseconds. */
export const largeObjectBytes = 256 * 1024;

/** Same as {@link decodeWatchStream}, for protobuf frames. @param turns in which large objects are decoded */
export async function* decodeProtobufWatch<T>(
  body: AsyncIterable<Buffer>,
  signal: AbortSignal,
  options?: ReadOptions,
  turns = new Turns(),
): AsyncGenerator<ObjectEvent<T>> {
  const decoder = new WatchEventDecoder(protobufMediaType, options);
  try {
    for await (const chunk of body) {
      for (const frame of decoder.frames(chunk)) {
        const event = frame.length < largeObjectBytes ? decoder.read(frame) : await turns.run(decoder.reading(frame));
        if (event.type === "ERROR") throw new StatusError(event.object);
        yield event as ObjectEvent<T>; // cast: the server is trusted to send objects of the watched kind
      }
    }
  } catch (err) {
    throw signal.aborted ? signal.reason : err;
  }
  signal.throwIfAborted();
  if (decoder.pendingBytes > 0) throw new Error("the watch ended in the middle of an event");
}

const newline = 0x0a;

function parseEvent<T>(line: string, options: ReadOptions | undefined): ObjectEvent<T> {
  let event: { type: string; object: unknown } | null;
  try {
    event = parseWire(line) as { type: string; object: unknown } | null; // cast: the next line checks both fields, and null
  } catch (err) {
    throw new BadEventError("unable to decode an event from the watch stream", { cause: err });
  }
  if (typeof event?.type !== "string" || typeof event.object !== "object" || event.object === null)
    throw new BadEventError("unable to decode an event from the watch stream");
  if (event.type === "ERROR") throw new StatusError(event.object as Status); // cast: an object; readers of a Status take every field for optional
  if (options?.omitsManagedFields === true) dropManagedFields(event.object);
  return event as ObjectEvent<T>; // cast: the server is trusted to send objects of the watched kind
}
