import type { Client } from "../client/client.ts";
import { hasCause, isNotFound } from "../objects/errors/predicates.ts";
import { StatusError } from "../objects/errors/status-error.ts";
import type { ResourceRef } from "../objects/meta/group-version.ts";
import type { KubeObject } from "../objects/meta/types.ts";
import type { ObjectReference } from "../objects/schema/kinds/core/v1.ts";
import type { Clock } from "../process/clock/clock.ts";
import type { Logger } from "../process/logging/logger.ts";
import { newBoundedQueue } from "../watch-stream/bounded-queue.ts";
import { type EventObject, eventPatch, makeEvent, newEventCorrelator } from "./event-correlator.ts";

/** Records events about objects for users. Never blocks and never throws: an event that cannot be written is logged and lost. */
export interface EventRecorder {
  /** @param object with apiVersion and kind; or a reference, when nothing else is known or a `fieldPath` matters */
  event(
    object: KubeObject | ObjectReference,
    type: "Normal" | "Warning",
    reason: string,
    message: string,
    options?: EventOptions,
  ): void;
  /** Resolves when all events recorded so far are written or given up. */
  flush(): Promise<void>;
}

interface EventOptions {
  readonly action?: string;
  readonly related?: KubeObject | ObjectReference;
  /** Annotations of the event. */
  readonly annotations?: Readonly<Record<string, string>> | undefined;
}

interface EventRecorderOptions {
  readonly client: Client;
  /** `source.component`, e.g. `deployment-controller`. */
  readonly component: string;
  readonly host?: string;
  readonly log: Logger;
  readonly clock: Clock;
  readonly random?: () => number;
}

/**
 * Returns a recorder that correlates events as client-go does and writes them one after the other. Recording never throws or
 * waits: events beyond the queue's length are dropped, failed writes are logged.
 * Source: k8s.io/client-go tools/record/event.go
 */
export function newEventRecorder(options: EventRecorderOptions): EventRecorder {
  const { client, component, host, log, clock, random = Math.random } = options;
  const correlator = newEventCorrelator(clock);
  const queue = newBoundedQueue<EventObject>(queueLength);
  let pending = 0;
  let writing = false;
  const idle: (() => void)[] = [];
  const uniqueSuffix = newUniqueSuffix(clock, random);

  const write = async (): Promise<void> => {
    if (writing) return;
    writing = true;
    for (let events = queue.drain(); events.length > 0; events = queue.drain()) {
      for (const event of events) {
        await record(event).catch((err) => log.error("Unable to write event", err, { reason: event.reason }));
        pending--;
      }
    }
    writing = false;
    for (const resolve of idle.splice(0)) resolve();
  };
  const record = async (received: EventObject): Promise<void> => {
    const correlated = correlator.correlate(received);
    if (correlated.drop) return;
    for (let tries = 1; ; tries++) {
      try {
        correlator.written(correlated.event, await store(client, correlated.event, correlated.patch));
        return;
      } catch (err) {
        // An API error is final; connection errors are retried.
        if (err instanceof StatusError) {
          if (!hasCause(err, "NamespaceTerminating")) throw err;
          return;
        }
        if (tries >= maxTries) throw err;
      }
      // The clock's timers do not keep the process alive, unlike `sleep`.
      await new Promise<void>((resolve) => void clock.after(retryMs * (tries === 1 ? random() : 1), resolve));
    }
  };

  return {
    event(object, type, reason, message, extra = {}) {
      const related = extra.related === undefined ? undefined : referenceTo(extra.related);
      const ref = referenceTo(object);
      const event = makeEvent({
        ref,
        type,
        reason,
        message: message.length > maxMessageLength ? message.slice(0, maxMessageLength) : message,
        component,
        host,
        now: clock.now(),
        uniqueSuffix: uniqueSuffix(),
        action: extra.action,
        related,
        annotations: extra.annotations,
      });
      log.v(2)?.info("Event occurred", { object: `${ref.namespace ?? ""}/${ref.name}`, kind: ref.kind, type, reason, message });
      if (!queue.push(event)) {
        log.warn("the queue of events is full; dropping one", { reason });
        return;
      }
      pending++;
      void write();
    },
    flush() {
      return pending === 0 ? Promise.resolve() : new Promise((resolve) => idle.push(resolve));
    },
  };
}

/**
 * Suffixes of event names: nanoseconds in hex, incremented where the clock yields the same value again. The clock counts
 * milliseconds; the rest is random, since other recorders write about the same object in the same millisecond.
 */
export function newUniqueSuffix(clock: Clock, random: () => number = Math.random): () => string {
  const nanoseconds = BigInt(Math.floor(random() * 1_000_000));
  let last = 0n;
  return () => {
    const now = BigInt(Math.floor(clock.now())) * 1_000_000n + nanoseconds;
    last = now > last ? now : last + 1n;
    return last.toString(16);
  };
}

/** Source: record/event.go maxTriesPerEvent, defaultSleepDuration; watch/mux.go's queue */
const maxTries = 12;
const retryMs = 10_000;
const queueLength = 1000;
const maxMessageLength = 1024;

const eventsRef: ResourceRef = { group: "", version: "v1", resource: "events", kind: "Event", namespaced: true };

async function store(client: Client, event: EventObject, patch: boolean): Promise<EventObject> {
  const { namespace, name = "" } = event.metadata;
  if (patch) {
    try {
      return await client.patch<EventObject>(eventsRef, { namespace, name }, { type: "strategic", body: eventPatch(event) });
    } catch (err) {
      if (!isNotFound(err)) throw err; // its TTL has expired; create it again
    }
  }
  const { resourceVersion: _, ...metadata } = event.metadata;
  return client.create<EventObject>(eventsRef, { ...event, metadata });
}

/** @returns the object's reference; a reference is returned unchanged. Source: client-go tools/reference/ref.go */
export function referenceTo(object: KubeObject | ObjectReference): ObjectReference {
  if (!("metadata" in object)) return object;
  const { apiVersion, kind, metadata } = object;
  const { namespace, name, uid, resourceVersion } = metadata;
  return {
    ...(kind !== undefined && { kind }),
    ...(namespace !== undefined && { namespace }),
    ...(name !== undefined && { name }),
    ...(uid !== undefined && { uid }),
    ...(apiVersion !== undefined && { apiVersion }),
    ...(resourceVersion !== undefined && { resourceVersion }),
  };
}
