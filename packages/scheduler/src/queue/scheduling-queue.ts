import { guarded } from "@coxswain/apimachinery/controller/guarded";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { keyOf } from "@coxswain/apimachinery/objects/meta/object-key";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Clock, Timer } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { type ClusterEvent, labelOf } from "../framework/cluster-event.ts";
import type { QueuedPodView } from "../framework/extension-points.ts";
import { KeyedHeap } from "./heap.ts";

/** A queue entry; times are in ms, monotonic clock. */
export interface QueuedPod extends QueuedPodView {
  pod: Pod;
  queuedAtMs: number;
  readonly firstQueuedAtMs: number;
  attempts: number;
  /** Plugins that rejected the pod in its last cycle; only their events move it. Empty: any event does. */
  unschedulablePlugins: ReadonlySet<string>;
}

interface SchedulingQueueOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly compare: (a: QueuedPodView, b: QueuedPodView) => number;
  /** True when the event may resolve a rejection by the plugin. */
  readonly mayHelp: (plugin: string, event: ClusterEvent) => boolean;
  /** Called for each pod added to a sub-queue, with the event's name in metrics. */
  readonly incoming?: ((part: "active" | "backoff" | "unschedulable", why: string) => void) | undefined;
  readonly initialBackoffMs?: number;
  readonly maxBackoffMs?: number;
}

/** Unschedulable pods are retried after this time even without an event. */
const longestWaitMs = 60_000;
/** Pods whose waits end within this time move together. */
const flushPeriodMs = 100;

/**
 * Pods waiting for a node: `active` pods are ready to be scheduled, `backoff` pods wait for their back-off to end,
 * `unschedulable` pods wait for a cluster event. Keys are `namespace/name`. A pod is in at most one of the three, and in
 * none while its cycle runs.
 * Source: pkg/scheduler/internal/queue/scheduling_queue.go
 */
export class SchedulingQueue {
  readonly #options: SchedulingQueueOptions;
  readonly #initialBackoffMs: number;
  readonly #maxBackoffMs: number;
  readonly #active: KeyedHeap<QueuedPod>;
  readonly #backoff: KeyedHeap<QueuedPod>;
  readonly #unschedulable = new Map<string, QueuedPod>();
  #cycle = 0;
  /** Value of `cycle` at the last event. A pod rejected in that cycle or an earlier one may have missed the event. */
  #wakeUpCycle = -1;
  #closed = false;
  /** Armed while a pod waits for a time. */
  #flushing: { readonly timer: Timer; readonly atMs: number } | undefined;
  #waiting: ((entry: QueuedPod | undefined) => void) | undefined;

  constructor(options: SchedulingQueueOptions) {
    this.#options = options;
    const { compare, initialBackoffMs = 1_000, maxBackoffMs = 10_000 } = options;
    this.#initialBackoffMs = initialBackoffMs;
    this.#maxBackoffMs = maxBackoffMs;
    this.#active = new KeyedHeap<QueuedPod>(keyOfEntry, compare);
    this.#backoff = new KeyedHeap<QueuedPod>(keyOfEntry, (a, b) => this.#backoffEnd(a) - this.#backoffEnd(b));
  }

  /** Adds a Pod without a node as active, with its attempts reset. */
  add(pod: Pod): void {
    const { clock } = this.#options;
    const key = keyOf(pod);
    this.#unschedulable.delete(key);
    this.#backoff.delete(key);
    const now = clock.monotonic();
    this.#activate({ pod, queuedAtMs: now, firstQueuedAtMs: now, attempts: 0, unschedulablePlugins: new Set() }, "PodAdd");
  }

  /** Replaces a queued Pod. An unschedulable one moves on when more than its status changed. */
  update(old: Pod | undefined, pod: Pod): void {
    const key = keyOf(pod);
    const queued = this.#active.get(key) ?? this.#backoff.get(key);
    if (queued !== undefined) {
      queued.pod = pod;
      if (this.#active.get(key) !== undefined) this.#active.set(queued);
      return;
    }
    const waitingEntry = this.#unschedulable.get(key);
    if (waitingEntry === undefined) {
      // The pod is in a cycle or bound. A failing cycle reads the current pod from the lister itself.
      return;
    }
    waitingEntry.pod = pod;
    if (old !== undefined && !isMoreThanStatus(old, pod)) return;
    this.#unschedulable.delete(key);
    this.#activateOrBackOff(waitingEntry, "PodUpdate");
    this.#arm();
  }

  delete(pod: Pod): void {
    const key = keyOf(pod);
    this.#active.delete(key);
    this.#backoff.delete(key);
    this.#unschedulable.delete(key);
  }

  /** Waits for the next pod; undefined once closed. */
  pop(): Promise<QueuedPod | undefined> {
    if (this.#closed) return Promise.resolve(undefined);
    const entry = this.#take();
    if (entry !== undefined) return Promise.resolve(entry);
    return new Promise((resolve) => {
      this.#waiting = resolve;
    });
  }

  /** Puts a pod back whose cycle found no node or failed. @param cycle value of `cycle` when that cycle began */
  addUnschedulable(entry: QueuedPod, cycleOfEntry: number): void {
    const { clock, incoming } = this.#options;
    const key = keyOf(entry.pod);
    if (this.#active.get(key) !== undefined || this.#backoff.get(key) !== undefined) return;
    entry.queuedAtMs = clock.monotonic();
    if (this.#wakeUpCycle >= cycleOfEntry) {
      this.#backOff(entry, "ScheduleAttemptFailure");
      this.#arm();
      return;
    }
    this.#unschedulable.delete(key); // the map is in the order of these times
    this.#unschedulable.set(key, entry);
    incoming?.("unschedulable", "ScheduleAttemptFailure");
    this.#arm();
  }

  /** Moves unschedulable pods on to active or backoff when the event may help them and `check` accepts them. */
  wakeUp(event: ClusterEvent, check?: (pod: Pod) => boolean): void {
    this.#wakeUpCycle = this.#cycle;
    const why = labelOf(event);
    for (const [key, entry] of this.#unschedulable) {
      if (!this.#isHelpedBy(entry, event) || !passes(entry.pod, check)) continue;
      this.#unschedulable.delete(key);
      this.#activateOrBackOff(entry, why);
    }
    this.#arm(); // once: tens of thousands may move
  }

  /** When the pod is tried again without an event, on the monotonic clock; undefined when it does not wait. */
  nextTryMs(pod: Pod): number | undefined {
    const key = keyOf(pod);
    const backingOff = this.#backoff.get(key);
    if (backingOff !== undefined) return this.#backoffEnd(backingOff);
    const waiting = this.#unschedulable.get(key);
    return waiting && waiting.queuedAtMs + longestWaitMs;
  }

  /** Number of pods popped; read it before a cycle and pass it to `addUnschedulable`. */
  get cycle(): number {
    return this.#cycle;
  }

  get counts(): { active: number; backoff: number; unschedulable: number } {
    return { active: this.#active.size, backoff: this.#backoff.size, unschedulable: this.#unschedulable.size };
  }

  /** Moves pods whose back-off has ended, or that were unschedulable for 60 s. */
  readonly #flush = (): void => {
    this.#flushing = undefined;
    const { clock } = this.#options;
    const now = clock.monotonic();
    const why = labelOf("*/*");
    for (let first = this.#backoff.peek(); first !== undefined && this.#backoffEnd(first) <= now; first = this.#backoff.peek()) {
      this.#backoff.pop();
      this.#activate(first, "BackoffComplete");
    }
    for (const [key, entry] of this.#unschedulable) {
      if (now - entry.queuedAtMs < longestWaitMs) break;
      this.#unschedulable.delete(key);
      this.#activateOrBackOff(entry, why);
    }
    this.#arm();
  };

  /** Ends the queue: a pending `pop` and all later ones resolve to undefined. */
  close(): void {
    this.#closed = true;
    this.#flushing?.timer.cancel();
    this.#waiting?.(undefined);
    this.#waiting = undefined;
  }

  #backoffEnd(entry: QueuedPod): number {
    return entry.queuedAtMs + Math.min(this.#initialBackoffMs * 2 ** Math.max(entry.attempts - 1, 0), this.#maxBackoffMs);
  }

  /** Sets the timer for the pod whose wait ends first. */
  #arm(): void {
    const { clock, log } = this.#options;
    const backingOff = this.#backoff.peek();
    const [waiting] = this.#unschedulable.values();
    const dueMs = Math.min(
      backingOff === undefined ? Number.POSITIVE_INFINITY : this.#backoffEnd(backingOff),
      waiting === undefined ? Number.POSITIVE_INFINITY : waiting.queuedAtMs + longestWaitMs,
    );
    const atMs = Math.ceil(dueMs / flushPeriodMs) * flushPeriodMs;
    if (atMs >= (this.#flushing?.atMs ?? Number.POSITIVE_INFINITY) || this.#closed) return;
    this.#flushing?.timer.cancel();
    const flush = guarded(log, "pods cannot be moved on in the queue", this.#flush);
    this.#flushing = { timer: clock.after(atMs - clock.monotonic(), flush), atMs };
  }

  #take(): QueuedPod | undefined {
    const entry = this.#active.pop();
    if (entry !== undefined) {
      entry.attempts++;
      this.#cycle++;
    }
    return entry;
  }

  #activate(entry: QueuedPod, why: string): void {
    const { incoming } = this.#options;
    this.#active.set(entry);
    incoming?.("active", why);
    if (this.#waiting === undefined) return;
    const hand = this.#waiting;
    this.#waiting = undefined;
    hand(this.#take());
  }

  /** The timer is left to the caller, which may move many. */
  #backOff(entry: QueuedPod, why: string): void {
    const { incoming } = this.#options;
    this.#backoff.set(entry);
    incoming?.("backoff", why);
  }

  #activateOrBackOff(entry: QueuedPod, why: string): void {
    const { clock } = this.#options;
    if (this.#backoffEnd(entry) > clock.monotonic()) this.#backOff(entry, why);
    else this.#activate(entry, why);
  }

  #isHelpedBy(entry: QueuedPod, event: ClusterEvent): boolean {
    const { mayHelp } = this.#options;
    return entry.unschedulablePlugins.size === 0 || [...entry.unschedulablePlugins].some((plugin) => mayHelp(plugin, event));
  }
}

const keyOfEntry = (entry: QueuedPod): string => keyOf(entry.pod);

/** A check that throws counts as passed: one malformed pod must not stop the iteration over the others. */
function passes(pod: Pod, check: ((pod: Pod) => boolean) | undefined): boolean {
  try {
    return check?.(pod) !== false;
  } catch {
    return true;
  }
}

/** Ignores what cannot make a pod fit: the scheduler's own condition updates must not trigger a retry. Source: isPodUpdated */
function isMoreThanStatus(old: Pod, now: Pod): boolean {
  const strip = ({ metadata, spec }: Pod): unknown => {
    const { resourceVersion: _, generation: __, managedFields: ___, finalizers: ____, ...kept } = metadata;
    return { metadata: kept, spec };
  };
  return !semanticEqual(strip(old), strip(now));
}
