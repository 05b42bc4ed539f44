import { hostname } from "node:os";
import type { Client } from "../client/client.ts";
import { hasCause, isNotFound } from "../objects/errors/predicates.ts";
import { StatusError } from "../objects/errors/status-error.ts";
import { formatMicroTime } from "../objects/meta/time.ts";
import type { KubeObject } from "../objects/meta/types.ts";
import type { ObjectReference } from "../objects/schema/kinds/core/v1.ts";
import type { Event, EventSeries } from "../objects/schema/kinds/events/v1.ts";
import { eventsV1 } from "../objects/schema/kinds/resources.ts";
import type { Clock, Timer } from "../process/clock/clock.ts";
import type { Logger } from "../process/logging/logger.ts";
import { type EventRecorder, newUniqueSuffix, referenceTo } from "./event-recorder.ts";

interface SeriesRecorderOptions {
  readonly client: Client;
  /** `reportingController`, e.g. `default-scheduler`. */
  readonly controller: string;
  readonly log: Logger;
  readonly clock: Clock;
  /** Stops the periodic updates of series. */
  readonly signal: AbortSignal;
  readonly random?: () => number;
}

/** A recorded event; `series` is set from its second occurrence on. */
interface Known {
  /** As first written. */
  readonly event: Event;
  series: EventSeries | undefined;
  lastMs: number;
}

/**
 * Records events.k8s.io/v1 Events, as used by the scheduler. A repeated event about the same objects (with the same
 * resourceVersion) starts a series, which is written once, counted in memory, and written again every half hour and after six
 * minutes without an occurrence.
 * Source: k8s.io/client-go tools/events/event_broadcaster.go, event_recorder.go
 */
export function newSeriesRecorder(options: SeriesRecorderOptions): EventRecorder {
  return new BufferedSeriesRecorder(options);
}

class BufferedSeriesRecorder implements EventRecorder {
  readonly #options: SeriesRecorderOptions;
  readonly #random: () => number;
  readonly #reportingInstance: string;
  readonly #uniqueSuffix: () => string;
  readonly #known = new Map<string, Known>();
  #pending = 0;
  readonly #idle: (() => void)[] = [];
  readonly #timers: Timer[];

  constructor(options: SeriesRecorderOptions) {
    this.#options = options;
    const { controller, clock, signal, random = Math.random } = options;
    this.#random = random;
    this.#reportingInstance = `${controller}-${hostname()}`;
    this.#uniqueSuffix = newUniqueSuffix(clock, random);
    this.#timers = [clock.every(refreshMs, () => void this.#refresh()), clock.every(finishMs, () => void this.#finish())];
    signal.addEventListener("abort", () => this.#cancel(), { once: true });
  }

  event(
    object: KubeObject | ObjectReference,
    type: "Normal" | "Warning",
    reason: string,
    message: string,
    { action = "", related }: Parameters<EventRecorder["event"]>[4] = {},
  ): void {
    const { clock, log, controller } = this.#options;
    const regarding = referenceTo(object);
    const relatedTo = related === undefined ? undefined : referenceTo(related);
    const nowMs = clock.now();
    const now = formatMicroTime(nowMs);
    log.v(2)?.info("Event occurred", {
      object: `${regarding.namespace ?? ""}/${regarding.name}`,
      kind: regarding.kind,
      type,
      reason,
      action,
      note: message,
    });
    const key = keyOf(action, reason, regarding, relatedTo);
    const before = this.#known.get(key);
    if (before?.series !== undefined) {
      before.series = { count: before.series.count + 1, lastObservedTime: now };
      before.lastMs = nowMs;
      return;
    }
    if (before === undefined && this.#pending >= mostPending) {
      log.warn("the queue of events is full; dropping one", { reason });
      return;
    }
    const metadata = { name: `${regarding.name}.${this.#uniqueSuffix()}`, namespace: regarding.namespace || "default" };
    const each: Known = before ?? {
      event: {
        kind: "Event",
        apiVersion: "events.k8s.io/v1",
        metadata,
        eventTime: now,
        reportingController: controller,
        reportingInstance: this.#reportingInstance,
        action,
        reason,
        regarding,
        ...(relatedTo === undefined ? {} : { related: relatedTo }),
        note: message,
        type,
      },
      series: undefined,
      lastMs: nowMs,
    };
    each.lastMs = nowMs;
    if (before !== undefined) each.series = { count: 1, lastObservedTime: now };
    this.#known.set(key, each);
    void this.#write(each);
  }

  flush(): Promise<void> {
    return this.#pending === 0 ? Promise.resolve() : new Promise((resolve) => this.#idle.push(resolve));
  }

  /** @returns false when the write failed and may be retried */
  async #tryWrite(each: Known): Promise<boolean> {
    const { client, log } = this.#options;
    try {
      await store(client, each);
      return true;
    } catch (err) {
      if (!(err instanceof StatusError)) {
        log.error("Unable to write event (may retry after sleeping)", err, { reason: each.event.reason });
        return false;
      }
      if (!hasCause(err, "NamespaceTerminating"))
        log.error("Server rejected event (will not retry!)", err, { reason: each.event.reason });
      return true;
    }
  }

  async #write(each: Known): Promise<void> {
    const { log, clock, signal } = this.#options;
    this.#pending++;
    for (let tries = 1; !(await this.#tryWrite(each)); tries++) {
      if (tries >= maxTries) {
        log.error("Unable to write event (retry limit exceeded!)", undefined, { reason: each.event.reason });
        break;
      }
      await clock.sleep(retryMs * (1 + retryJitter * this.#random()), signal).catch(() => {});
      if (signal.aborted) break;
    }
    if (--this.#pending === 0) for (const resolve of this.#idle.splice(0)) resolve();
  }

  async #refresh(): Promise<void> {
    for (const each of this.#known.values()) if (each.series !== undefined) await this.#tryWrite(each);
  }

  async #finish(): Promise<void> {
    const { clock } = this.#options;
    const before = clock.now() - finishMs;
    for (const [key, each] of this.#known) {
      if (each.lastMs >= before) continue;
      if (each.series !== undefined && !(await this.#tryWrite(each))) continue;
      if (each.lastMs < before) this.#known.delete(key); // otherwise the event has occurred again meanwhile
    }
  }

  #cancel(): void {
    for (const timer of this.#timers) timer.cancel();
  }
}

/** Source: event_broadcaster.go maxTriesPerEvent, defaultSleepDuration, refreshTime, finishTime */
const maxTries = 12;
const retryMs = 10_000;
const retryJitter = 0.25;
const refreshMs = 30 * 60_000;
const finishMs = 6 * 60_000;
/** Upstream has no limit; with the client's rate limit, events of a few thousand new Pods are pending for minutes. */
const mostPending = 20_000;

/** Identity of a series; the message does not count. */
function keyOf(action: string, reason: string, regarding: ObjectReference, related: ObjectReference | undefined): string {
  return JSON.stringify([action, reason, regarding, related ?? null]);
}

/** Patches the stored event with its series; recreates the event when it is gone. */
async function store(client: Client, { event, series }: Known): Promise<void> {
  const { namespace, name = "" } = event.metadata;
  const options = { readsMetadataOnly: true };
  if (series !== undefined) {
    try {
      await client.patch<Event>(eventsV1, { namespace, name }, { type: "strategic", body: { series } }, options);
      return;
    } catch (err) {
      if (!isNotFound(err)) throw err;
    }
  }
  await client.create<Event>(eventsV1, series === undefined ? event : { ...event, series }, options);
}
