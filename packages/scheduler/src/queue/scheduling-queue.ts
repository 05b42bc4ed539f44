import type { Clock } from "@coxswain/apimachinery/clock/clock";
import { semanticEqual } from "@coxswain/apimachinery/meta/deep-equal";
import { keyOf } from "@coxswain/apimachinery/meta/object-key";
import type { Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
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

/**
 * Pods waiting for a node: `active` pods are ready to be scheduled, `backoff` pods wait for their back-off to end,
 * `unschedulable` pods wait for a cluster event. Keys are `namespace/name`. A pod is in at most one of the three, and in
 * none while its cycle runs.
 * Source: pkg/scheduler/internal/queue/scheduling_queue.go
 */
export interface SchedulingQueue {
  add(pod: Pod): void;
  update(old: Pod | undefined, pod: Pod): void;
  delete(pod: Pod): void;
  /** Waits for the next pod; undefined once closed. */
  pop(): Promise<QueuedPod | undefined>;
  /** Puts a pod back whose cycle found no node or failed. @param cycle value of `cycle` when that cycle began */
  addUnschedulable(entry: QueuedPod, cycle: number): void;
  /** Moves unschedulable pods on to active or backoff when the event may help them and `check` accepts them. */
  wakeUp(event: ClusterEvent, check?: (pod: Pod) => boolean): void;
  /** Number of pods popped; read it before a cycle and pass it to `addUnschedulable`. */
  readonly cycle: number;
  readonly counts: { active: number; backoff: number; unschedulable: number };
  /** Moves pods whose back-off has ended, or that were unschedulable for 60 s. To be called every second. */
  flush(): void;
  close(): void;
}

export interface SchedulingQueueOptions {
  readonly clock: Clock;
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

export function newSchedulingQueue(options: SchedulingQueueOptions): SchedulingQueue {
  const { clock, compare, mayHelp, incoming, initialBackoffMs = 1_000, maxBackoffMs = 10_000 } = options;
  const keyOfEntry = (entry: QueuedPod): string => keyOf(entry.pod);
  const backoffEnd = (entry: QueuedPod): number =>
    entry.queuedAtMs + Math.min(initialBackoffMs * 2 ** Math.max(entry.attempts - 1, 0), maxBackoffMs);
  const active = new KeyedHeap<QueuedPod>(keyOfEntry, compare);
  const backoff = new KeyedHeap<QueuedPod>(keyOfEntry, (a, b) => backoffEnd(a) - backoffEnd(b));
  const unschedulable = new Map<string, QueuedPod>();
  let cycle = 0;
  /** Value of `cycle` at the last event. A pod rejected in that cycle or an earlier one may have missed the event. */
  let wakeUpCycle = -1;
  let closed = false;
  let waiting: ((entry: QueuedPod | undefined) => void) | undefined;

  const take = (): QueuedPod | undefined => {
    const entry = active.pop();
    if (entry !== undefined) {
      entry.attempts++;
      cycle++;
    }
    return entry;
  };
  const activate = (entry: QueuedPod, why: string): void => {
    active.set(entry);
    incoming?.("active", why);
    if (waiting === undefined) return;
    const hand = waiting;
    waiting = undefined;
    hand(take());
  };
  const backOff = (entry: QueuedPod, why: string): void => {
    backoff.set(entry);
    incoming?.("backoff", why);
  };
  const activateOrBackOff = (entry: QueuedPod, why: string): void => {
    if (backoffEnd(entry) > clock.monotonic()) backOff(entry, why);
    else activate(entry, why);
  };
  const isHelpedBy = (entry: QueuedPod, event: ClusterEvent): boolean =>
    entry.unschedulablePlugins.size === 0 || [...entry.unschedulablePlugins].some((plugin) => mayHelp(plugin, event));

  return {
    add(pod) {
      const key = keyOf(pod);
      unschedulable.delete(key);
      backoff.delete(key);
      const now = clock.monotonic();
      activate({ pod, queuedAtMs: now, firstQueuedAtMs: now, attempts: 0, unschedulablePlugins: new Set() }, "PodAdd");
    },
    update(old, pod) {
      const key = keyOf(pod);
      const queued = active.get(key) ?? backoff.get(key);
      if (queued !== undefined) {
        queued.pod = pod;
        if (active.get(key) !== undefined) active.set(queued);
        return;
      }
      const waitingEntry = unschedulable.get(key);
      if (waitingEntry === undefined) {
        // In a cycle or bound. A failing cycle reads the current pod from the lister itself.
        return;
      }
      waitingEntry.pod = pod;
      if (old !== undefined && !isMoreThanStatus(old, pod)) return;
      unschedulable.delete(key);
      activateOrBackOff(waitingEntry, "PodUpdate");
    },
    delete(pod) {
      const key = keyOf(pod);
      active.delete(key);
      backoff.delete(key);
      unschedulable.delete(key);
    },
    pop() {
      if (closed) return Promise.resolve(undefined);
      const entry = take();
      if (entry !== undefined) return Promise.resolve(entry);
      return new Promise((resolve) => {
        waiting = resolve;
      });
    },
    addUnschedulable(entry, cycleOfEntry) {
      const key = keyOf(entry.pod);
      if (active.get(key) !== undefined || backoff.get(key) !== undefined) return;
      entry.queuedAtMs = clock.monotonic();
      if (wakeUpCycle >= cycleOfEntry) return backOff(entry, "ScheduleAttemptFailure");
      unschedulable.set(key, entry);
      incoming?.("unschedulable", "ScheduleAttemptFailure");
    },
    wakeUp(event, check) {
      wakeUpCycle = cycle;
      for (const [key, entry] of unschedulable) {
        if (!isHelpedBy(entry, event) || !passes(entry.pod, check)) continue;
        unschedulable.delete(key);
        activateOrBackOff(entry, labelOf(event));
      }
    },
    get cycle() {
      return cycle;
    },
    get counts() {
      return { active: active.size, backoff: backoff.size, unschedulable: unschedulable.size };
    },
    flush() {
      const now = clock.monotonic();
      for (let first = backoff.peek(); first !== undefined && backoffEnd(first) <= now; first = backoff.peek()) {
        backoff.pop();
        activate(first, "BackoffComplete");
      }
      for (const [key, entry] of unschedulable) {
        if (now - entry.queuedAtMs < longestWaitMs) continue;
        unschedulable.delete(key);
        activateOrBackOff(entry, labelOf("*/*"));
      }
    },
    close() {
      closed = true;
      waiting?.(undefined);
      waiting = undefined;
    },
  };
}

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
