/** Encodes watch events in each form that clients may request. */

import { encodeJson } from "@coxswain/apimachinery/objects/codec/json";
import { protobufMediaType } from "@coxswain/apimachinery/objects/codec/negotiate";
import { encodeProtobuf } from "@coxswain/apimachinery/objects/codec/protobuf";
import { frameWatchEvent } from "@coxswain/apimachinery/objects/codec/stream";
import { statusOf } from "@coxswain/apimachinery/objects/errors/status-error";
import { formatGroupVersion } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { atEndOfTurn } from "@coxswain/apimachinery/process/clock/end-of-turn";
import type { TableColumns } from "../registry/generic/strategy.ts";
import type { Entry, WatchEvent } from "../storage/storage.ts";
import { jsonOf, protobufOf } from "./convert.ts";
import type { Call } from "./env.ts";
import { countFrames, type WatchMetrics } from "./metrics.ts";
import type { Output } from "./negotiation.ts";
import { encodeStatus, tableOptions } from "./response.ts";
import type { ServedResource } from "./served-resources.ts";
import { partialMetadata, tableJson } from "./transform.ts";
import type { Batch, Framer } from "./watch-framer.ts";

/** Limits what a watch encodes ahead of its client. A single event may be larger. */
const batchBytes = 64 * 1024;

/**
 * The framer of one watch. Watches of the same resource and form share one, and with it the frames of the current event-loop turn.
 * @param rewrite transforms entries for this watch; its frames are not shared then
 */
export function framerFor(call: Call, output: Output, metrics?: WatchMetrics, rewrite?: (entry: Entry) => Entry): Framer {
  const { served } = call;
  const { mediaType, as = "", version = "v1" } = output;
  const newForm = (): Form => (as === "" ? objectForm(served, mediaType) : metadataForm(mediaType, version));
  if (as === "Table") return counting(newFramer(mediaType, tableForm(call, output), rewrite), metrics);
  if (rewrite !== undefined) return counting(newFramer(mediaType, newForm(), rewrite), metrics);
  return served.watchFramers.getOrInsertComputed(`${mediaType} ${as} ${version}`, () =>
    oncePerTurn(newFramer(mediaType, newForm()), metrics),
  );
}

function newFramer(mediaType: string, form: Form, rewrite = (entry: Entry): Entry => entry): Framer {
  const frame = (event: WatchEvent): Buffer => {
    switch (event.type) {
      case "BOOKMARK":
        return form.bookmark(event.revision);
      case "ERROR": {
        const status = encodeStatus(statusOf(event.error), mediaType, false);
        return frameWatchEvent("ERROR", withoutNewline(status), mediaType);
      }
      default:
        return form.event(event.type, rewrite(event.entry));
    }
  };
  return (events) => {
    const frames: Buffer[] = [];
    for (let size = 0; frames.length < events.length && size < batchBytes; ) {
      const made = frame(events[frames.length]!);
      frames.push(made);
      size += made.length;
    }
    return { frames, bytes: frames.length === 1 ? frames[0]! : Buffer.concat(frames) };
  };
}

function counting(framer: Framer, metrics: WatchMetrics | undefined): Framer {
  return (events) => {
    const batch = framer(events);
    countFrames(metrics, batch.frames, 1);
    return batch;
  };
}

/**
 * Within an event-loop turn, watchers with equal events get the same batch, which is counted for all of them together.
 * Cleared at the end of the turn, so that events are not kept in memory.
 */
function oncePerTurn(framer: Framer, metrics: WatchMetrics | undefined): Framer {
  let last: { events: readonly WatchEvent[]; batch: Batch; readers: number } | undefined;
  const forget = (): void => {
    if (last !== undefined) countFrames(metrics, last.batch.frames, last.readers);
    last = undefined;
  };
  return (events) => {
    if (last !== undefined && areSame(last.events, events)) {
      last.readers++;
      return last.batch;
    }
    if (last === undefined) atEndOfTurn(forget);
    const batch = framer(events);
    forget();
    last = { events, batch, readers: 1 };
    return batch;
  };
}

function areSame(some: readonly WatchEvent[], others: readonly WatchEvent[]): boolean {
  if (some === others) return true;
  if (some.length !== others.length) return false;
  for (let i = 0; i < some.length; i++) if (some[i] !== others[i]) return false;
  return true;
}

type ChangeType = "ADDED" | "MODIFIED" | "DELETED";

interface Form {
  event(type: ChangeType, entry: Entry): Buffer;
  bookmark(revision: number): Buffer;
}

function objectForm(served: ServedResource, mediaType: string): Form {
  const bytesOf = mediaType === protobufMediaType ? protobufOf : jsonOf;
  return {
    event: madeOncePerTurn((type, entry) => frameWatchEvent(type, bytesOf(entry, served), mediaType)),
    bookmark(revision) {
      const object = bare(served.kind.kind, formatGroupVersion(served.kind), revision);
      const bytes = mediaType === protobufMediaType ? encodeProtobuf(object, served.kind) : encodeJson(object, served.kind);
      return frameWatchEvent("BOOKMARK", bytes, mediaType);
    },
  };
}

/** Shares frames between watchers with different selections within an event-loop turn; later the frame is rarely needed again. */
function madeOncePerTurn(make: Form["event"]): Form["event"] {
  /** Recreated each turn: a cleared Map keeps its capacity (see `TransientMap`). */
  let frames: Map<Entry, { [T in ChangeType]?: Buffer }> | undefined;
  const forget = (): void => {
    frames = undefined;
  };
  return (type, entry) => {
    if (frames === undefined) {
      frames = new Map();
      atEndOfTurn(forget);
    }
    let made = frames.get(entry);
    if (made === undefined) {
      made = {};
      frames.set(entry, made);
    }
    made[type] ??= make(type, entry);
    return made[type];
  };
}

/** Rows depend on the current time, so they are encoded per watcher. Only the first event has the columns. */
function tableForm(call: Call, output: Output): Form {
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

function metadataForm(mediaType: string, metaVersion: string): Form {
  const kind = { group: "meta.k8s.io", version: metaVersion, kind: "PartialObjectMetadata" };
  const encode = (object: KubeObject): Buffer =>
    mediaType === protobufMediaType ? encodeProtobuf(object, kind) : encodeJson(object, kind);
  return {
    event: madeOncePerTurn((type, entry) =>
      frameWatchEvent(type, encode(partialMetadata(entry.object(), metaVersion)), mediaType),
    ),
    bookmark: (revision) => frameWatchEvent("BOOKMARK", encode(bare(kind.kind, formatGroupVersion(kind), revision)), mediaType),
  };
}

/** The object of a bookmark: kind, apiVersion and resourceVersion only. */
function bare(kind: string, apiVersion: string, revision: number): KubeObject {
  return { kind, apiVersion, metadata: { resourceVersion: String(revision), creationTimestamp: null } };
}

function withoutNewline(bytes: Buffer): Buffer {
  return bytes.length > 0 && bytes[bytes.length - 1] === 0x0a ? bytes.subarray(0, -1) : bytes;
}
