/**
 * A watch: one answer that goes on until its time is up, the client leaves, or it reads too slowly. Every event is
 * framed once per entry and version and the same buffer goes to every watcher; what has come in during one turn of the
 * event loop is written at once.
 * Over a WebSocket each event is a message: text in JSON, binary (without the length before it) in protobuf.
 * Source: k8s.io/apiserver pkg/endpoints/handlers/watch.go
 */
import { realClock } from "@coxswain/apimachinery/clock/clock";
import { encodeJson } from "@coxswain/apimachinery/codec/json";
import { encodeProtobuf } from "@coxswain/apimachinery/codec/protobuf";
import { frameWatchEvent } from "@coxswain/apimachinery/codec/stream";
import { statusOf } from "@coxswain/apimachinery/errors/status-error";
import { formatGroupVersion } from "@coxswain/apimachinery/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { TableColumns } from "../registry/generic/strategy.ts";
import type { RequestContext } from "../request/context.ts";
import { acceptWebSocket, isWebSocketRequest } from "../request/web-socket.ts";
import type { Entry, WatchEvent, WatchStream } from "../storage/storage.ts";
import { jsonOf, protobufOf, slotOf } from "./convert.ts";
import type { Call } from "./env.ts";
import { type WatchMetrics, watchMetricsOf } from "./metrics.ts";
import { type ListOptions, revisionParam } from "./options.ts";
import { encodeStatus, jsonType, negotiateFor, type Output, protobufType, tableOptions } from "./response.ts";
import { linkedEntry, namesLinks } from "./self-link.ts";
import { includeObjectParam, partialMetadata, tableJson } from "./transform.ts";

/** A client whose buffers stay full for so long is given up. */
const stalledAfterMs = 60_000;

export async function watch(call: Call, options: ListOptions): Promise<void> {
  const { ctx, served, env } = call;
  negotiateFor(call); // as for a list, whose refusal names other types
  const output = negotiateFor(call, true);
  if (output.as === "Table") includeObjectParam(ctx.query); // refuse a wrong value before the answer begins
  const clock = env.clock ?? realClock;
  const timeoutMs = watchTimeoutMs(options.timeoutSeconds, env.minRequestTimeoutMs);
  const end = new AbortController();
  const stop = (): void => end.abort();
  const timer = clock.after(timeoutMs, stop);
  ctx.signal.addEventListener("abort", stop, { once: true });
  try {
    const store = served.store as NonNullable<typeof served.store>;
    const stream = await store.watch(call.namespace, {
      labels: options.labels,
      fields: options.fields,
      revision: revisionParam(options.resourceVersion, "cache"),
      bookmarks: options.allowWatchBookmarks,
      deadlineMs: env.services.now() + timeoutMs,
      signal: end.signal,
    });
    const sink = isWebSocketRequest(ctx.exchange) ? await webSocketSink(ctx, output) : bodySink(ctx, output);
    if (sink === undefined) return stream.stop();
    const metrics = env.metrics && watchMetricsOf(env.metrics, served);
    metrics?.watchers.inc();
    try {
      const complete = await pump(stream, measured(sink, metrics), newFramer(call, output), (fire) =>
        clock.after(stalledAfterMs, fire),
      );
      if (complete) sink.end();
      else ctx.exchange.destroy();
    } finally {
      metrics?.watchers.dec();
    }
  } finally {
    timer.cancel();
    ctx.signal.removeEventListener("abort", stop);
    end.abort();
  }
}

/** `timeoutSeconds`, or a random time between the least one and its double, so that watches do not all end together. */
export function watchTimeoutMs(timeoutSeconds: number | undefined, minRequestTimeoutMs: number, random = Math.random): number {
  if (timeoutSeconds !== undefined && timeoutSeconds > 0) return timeoutSeconds * 1000;
  return Math.floor(minRequestTimeoutMs * (1 + random()));
}

/** Where the frames of events go. */
interface Sink {
  /** @returns false when the transport's buffer is full. */
  write(frames: readonly Buffer[]): boolean;
  /** Rejects when the client is gone. */
  drained(): Promise<void>;
  end(): void;
}

function bodySink({ exchange }: RequestContext, { mediaType }: Output): Sink {
  const headers = { "content-type": mediaType === jsonType ? jsonType : `${mediaType};stream=watch` };
  const response = exchange.stream(200, headers);
  return {
    write: (frames) => response.write(frames.length === 1 ? (frames[0] as Buffer) : Buffer.concat(frames)),
    drained: () => response.drained(),
    end: () => response.end(),
  };
}

/** @returns undefined when the handshake was refused. */
async function webSocketSink({ exchange, audit }: RequestContext, { mediaType }: Output): Promise<Sink | undefined> {
  const webSocket = await acceptWebSocket(exchange, { originRequired: true });
  if (webSocket === undefined) return undefined;
  audit?.started(101);
  const binary = mediaType === protobufType;
  return {
    write(frames) {
      let room = true;
      for (const frame of frames) {
        room = webSocket.send(binary ? frame.subarray(frameLengthBytes) : frame, binary ? "binary" : "text");
      }
      return room;
    },
    drained: () => webSocket.drained(),
    end: () => webSocket.close(),
  };
}

function measured(sink: Sink, metrics: WatchMetrics | undefined): Sink {
  if (metrics === undefined) return sink;
  return {
    ...sink,
    write(frames) {
      metrics.events.inc(frames.length);
      for (const frame of frames) metrics.sizes.observe(frame.length);
      return sink.write(frames);
    },
  };
}

/** What stands before a protobuf event in a plain body; a message knows its own length. */
const frameLengthBytes = 4;

type Framer = (event: WatchEvent) => Buffer | undefined;

/** @returns false when the client stopped reading: its connection has to be broken, not ended. */
async function pump(
  stream: WatchStream,
  sink: Sink,
  frame: Framer,
  after: (fire: () => void) => { cancel(): void },
): Promise<boolean> {
  try {
    while (await stream.ready()) {
      const frames: Buffer[] = [];
      for (const event of stream.take()) {
        const bytes = frame(event);
        if (bytes !== undefined) frames.push(bytes);
      }
      if (frames.length === 0) continue;
      if (!sink.write(frames) && !(await drainedInTime(sink, after))) return false;
    }
    return true;
  } finally {
    stream.stop();
  }
}

function drainedInTime(sink: Sink, after: (fire: () => void) => { cancel(): void }): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = after(() => resolve(false));
    sink.drained().then(
      () => {
        timer.cancel();
        resolve(true);
      },
      () => {
        timer.cancel();
        resolve(false);
      },
    );
  });
}

/** Events in the form this client asked for; undefined for what it does not get. */
function newFramer(call: Call, output: Output): Framer {
  const object = objectFramer(call, output);
  const linked = namesLinks(call);
  return (event) => {
    switch (event.type) {
      case "BOOKMARK":
        return object.bookmark(event.revision);
      case "ERROR": {
        const status = encodeStatus(statusOf(event.error), output.mediaType, false);
        return frameWatchEvent("ERROR", withoutNewline(status), output.mediaType);
      }
      default:
        return object.event(event.type, linked ? linkedEntry(call, event.entry) : event.entry);
    }
  };
}

interface ObjectFramer {
  event(type: "ADDED" | "MODIFIED" | "DELETED", entry: Entry): Buffer;
  bookmark(revision: number): Buffer;
}

function objectFramer(call: Call, output: Output): ObjectFramer {
  const metaVersion = output.version ?? "v1";
  if (output.as === "Table") return tableFramer(call, output);
  if (output.as !== undefined) return metadataFramer(output, metaVersion);
  const { served } = call;
  const { mediaType } = output;
  const slots = frameSlots(`${mediaType}:${slotOf(served)}`);
  const bytesOf = mediaType === protobufType ? protobufOf : jsonOf;
  return {
    event: (type, entry) => entry.memo(slots[type], () => frameWatchEvent(type, bytesOf(entry, served), mediaType)),
    bookmark(revision) {
      const object = bare(served.kind.kind, formatGroupVersion(served.kind), revision);
      const bytes = mediaType === protobufType ? encodeProtobuf(object, served.kind) : encodeJson(object, served.kind);
      return frameWatchEvent("BOOKMARK", bytes, mediaType);
    },
  };
}

/** Where an entry keeps its frames of each type. Put together once for a watcher, not for each of its events. */
function frameSlots(form: string): Readonly<Record<"ADDED" | "MODIFIED" | "DELETED", string>> {
  return { ADDED: `frame:ADDED:${form}`, MODIFIED: `frame:MODIFIED:${form}`, DELETED: `frame:DELETED:${form}` };
}

/** Rows depend on the time of day, so they are made for each watcher; only the first event brings the columns. */
function tableFramer(call: Call, output: Output): ObjectFramer {
  const { served } = call;
  let columns: TableColumns | undefined = served.definition.table;
  const frame = (type: string, revision: number, entries: Entry[]): Buffer => {
    const json = tableJson(served, { resourceVersion: String(revision) }, entries, tableOptions(call, output), columns);
    columns = undefined;
    return frameWatchEvent(type, Buffer.from(json), output.mediaType);
  };
  return {
    event: (type, entry) => frame(type, entry.revision, [entry]),
    bookmark: (revision) => frame("BOOKMARK", revision, []),
  };
}

function metadataFramer(output: Output, metaVersion: string): ObjectFramer {
  const { mediaType } = output;
  const kind = { group: "meta.k8s.io", version: metaVersion, kind: "PartialObjectMetadata" };
  const slots = frameSlots(`${mediaType}:${kind.kind}/${metaVersion}`);
  const encode = (object: KubeObject): Buffer =>
    mediaType === protobufType ? encodeProtobuf(object, kind) : encodeJson(object, kind);
  return {
    event: (type, entry) =>
      entry.memo(slots[type], () => frameWatchEvent(type, encode(partialMetadata(entry.object(), metaVersion)), mediaType)),
    bookmark: (revision) => frameWatchEvent("BOOKMARK", encode(bare(kind.kind, formatGroupVersion(kind), revision)), mediaType),
  };
}

/** What a bookmark carries: an object of the kind with nothing but a resourceVersion. */
function bare(kind: string, apiVersion: string, revision: number): KubeObject {
  return { kind, apiVersion, metadata: { resourceVersion: String(revision), creationTimestamp: null } };
}

function withoutNewline(bytes: Buffer): Buffer {
  return bytes.length > 0 && bytes[bytes.length - 1] === 0x0a ? bytes.subarray(0, -1) : bytes;
}
