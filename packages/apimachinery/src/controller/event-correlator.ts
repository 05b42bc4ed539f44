import { newTokenBucket, type TokenBucket } from "../client/rate-limit.ts";
import { formatTime } from "../objects/meta/time.ts";
import type { ObjectMeta, TypeMeta } from "../objects/meta/types.ts";
import type { ObjectReference } from "../objects/schema/kinds/core/v1.ts";
import type { Clock } from "../process/clock/clock.ts";

/** The fields of a core/v1 Event that a recorder sets. */
export interface EventObject extends TypeMeta {
  metadata: ObjectMeta;
  involvedObject: ObjectReference;
  reason: string;
  message: string;
  source: { component: string; host?: string };
  firstTimestamp: string;
  lastTimestamp: string;
  count: number;
  type: string;
  action?: string;
  related?: ObjectReference;
  eventTime: null;
  reportingComponent: string;
  reportingInstance: string;
}

/** The decision on an event: drop it, create it, or patch the count of an existing one. */
type Correlated = { readonly drop: true } | { readonly drop: false; readonly event: EventObject; readonly patch: boolean };

interface EventCorrelator {
  correlate(event: EventObject): Correlated;
  /** Records the stored object, on which later events of the same kind are counted. */
  written(event: EventObject, stored: EventObject): void;
}

/**
 * Limits event traffic: a repeated event increments the count of one object; more than ten events within ten minutes that differ
 * only in their message are aggregated; and after a burst of 25 events about one object, one per five minutes passes.
 * Source: k8s.io/client-go tools/record/events_cache.go
 */
export function newEventCorrelator(clock: Clock): EventCorrelator {
  const similar = newRecent<{ messages: Set<string>; lastAt: number }>();
  const written = newRecent<{ name: string; resourceVersion: string; count: number; firstTimestamp: string }>();
  const buckets = newRecent<TokenBucket>();
  const keysOf = newKeys();

  /** Aggregates events of a group once it has `maxSimilar` different messages. */
  const aggregate = (event: EventObject): { event: EventObject; key: string } => {
    const { group } = keysOf(event);
    const now = clock.now();
    let record = similar.get(group);
    if (record === undefined || now - record.lastAt > similarIntervalMs) record = { messages: new Set(), lastAt: now };
    record.messages.add(event.message);
    record.lastAt = now;
    similar.set(group, record);
    if (record.messages.size < maxSimilar) return { event, key: eventKey(event) };
    record.messages.delete(record.messages.values().next().value!); // evict one, so that the set stays bounded
    const message = `(combined from similar events): ${event.message}`;
    return { event: { ...event, metadata: { ...event.metadata }, message }, key: group };
  };

  return {
    correlate(received) {
      const { event, key } = aggregate(received);
      const before = written.get(key);
      let counted = event;
      if (before !== undefined) {
        const { name, resourceVersion, count, firstTimestamp } = before;
        counted = { ...event, metadata: { ...event.metadata, name, resourceVersion }, firstTimestamp, count: count + 1 };
      }
      written.set(key, {
        name: counted.metadata.name ?? "",
        resourceVersion: counted.metadata.resourceVersion ?? "",
        count: counted.count,
        firstTimestamp: counted.firstTimestamp,
      });
      const { about } = keysOf(event);
      let bucket = buckets.get(about);
      if (bucket === undefined) bucket = newTokenBucket({ qps: 1 / 300, burst: 25, clock });
      buckets.set(about, bucket);
      if (!bucket.tryAccept()) return { drop: true };
      return { drop: false, event: counted, patch: counted.count > 1 };
    },
    written(event, stored) {
      const key = event.message.startsWith("(combined from similar events): ") ? keysOf(event).group : eventKey(event);
      written.set(key, {
        name: stored.metadata.name ?? "",
        resourceVersion: stored.metadata.resourceVersion ?? "",
        count: stored.count,
        firstTimestamp: stored.firstTimestamp,
      });
    },
  };
}

/** Strategic merge patch that updates an existing event. */
export function eventPatch(event: EventObject): unknown {
  const { count, lastTimestamp, message } = event;
  return { count, lastTimestamp, message };
}

/** Creates a core/v1 Event. @param options.host of the component; set by node agents and the like */
export function makeEvent(options: {
  ref: ObjectReference;
  type: string;
  reason: string;
  message: string;
  component: string;
  host?: string | undefined;
  now: number;
  uniqueSuffix: string;
  action?: string | undefined;
  related?: ObjectReference | undefined;
  annotations?: Readonly<Record<string, string>> | undefined;
}): EventObject {
  const { ref, type, reason, message, component, host, now, uniqueSuffix, action, related, annotations } = options;
  const timestamp = formatTime(now);
  return {
    kind: "Event",
    apiVersion: "v1",
    metadata: {
      name: `${ref.name}.${uniqueSuffix}`,
      namespace: ref.namespace || "default",
      ...(annotations && { annotations: { ...annotations } }),
    },
    involvedObject: ref,
    reason,
    message,
    source: { component, ...(host ? { host } : {}) },
    firstTimestamp: timestamp,
    lastTimestamp: timestamp,
    count: 1,
    type,
    ...(action === undefined ? {} : { action }),
    ...(related === undefined ? {} : { related }),
    eventTime: null,
    reportingComponent: "",
    reportingInstance: "",
  };
}

const maxSimilar = 10;
const similarIntervalMs = 600_000;
/** Source: events_cache.go maxLruCacheEntries */
const mostEntries = 4096;

function aboutOf({ source, involvedObject: o }: EventObject): (string | undefined)[] {
  return [source.component, source.host, o.kind, o.namespace, o.name, o.uid, o.apiVersion];
}

/** What events are grouped by. */
interface Keys {
  /** Of all events about one object; for the limit of events. */
  readonly about: string;
  /** Of events that differ only in their message. */
  readonly group: string;
}

/** Keeps the last keys: a controller often records hundreds of events in a row that differ only in their message. */
function newKeys(): (event: EventObject) => Keys {
  let parts: readonly (string | undefined)[] = [];
  let keys: Keys = { about: "", group: "" };
  return (event) => {
    const about = aboutOf(event);
    const now = [...about, event.type, event.reason, event.reportingComponent, event.reportingInstance];
    if (now.length !== parts.length || now.some((part, at) => part !== parts[at])) {
      parts = now;
      keys = { about: about.join("\0"), group: now.join("\0") };
    }
    return keys;
  };
}

function eventKey(event: EventObject): string {
  return [...aboutOf(event), event.involvedObject.fieldPath, event.type, event.reason, event.message].join("\0");
}

/** A bounded map that evicts the entry written least recently. */
function newRecent<V>() {
  const entries = new Map<string, V>();
  let newest: string | undefined;
  return {
    get: (key: string): V | undefined => entries.get(key),
    set(key: string, value: V): void {
      if (key !== newest) entries.delete(key);
      newest = key;
      entries.set(key, value);
      if (entries.size > mostEntries) entries.delete(entries.keys().next().value!);
    },
  };
}
