import type { Clock } from "@coxswain/apimachinery/clock/clock";
import { semanticEqual } from "@coxswain/apimachinery/meta/deep-equal";
import { keyOf } from "@coxswain/apimachinery/meta/object-key";
import type { Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { type ClusterEvent, labelOf } from "../framework/cluster-event.ts";
import type { QueuedPodView } from "../framework/extension-points.ts";
import { KeyedHeap } from "./heap.ts";

export interface QueuedPod extends QueuedPodView {
  pod: Pod;
  queuedAtMs: number;
  readonly firstQueuedAtMs: number;
  attempts: number;
  /** Who refused it last; tells which events can help. Empty: any can. */
  unschedulablePlugins: ReadonlySet<string>;
}

/**
 * Pods that wait for a node: `active` are next, `backoff` were refused a moment ago, `unschedulable` wait for a change in
 * the cluster. Keys are `namespace/name`; a pod is in one of the three at most, and in none while its cycle runs.
 * Source: pkg/scheduler/internal/queue/scheduling_queue.go
 */
export interface SchedulingQueue {
  add(pod: Pod): void;
  update(old: Pod | undefined, pod: Pod): void;
  delete(pod: Pod): void;
  /** The next pod; waits for one. undefined once closed. */
  pop(): Promise<QueuedPod | undefined>;
  /** Back after a cycle that found no node, or that failed. */
  addUnschedulable(entry: QueuedPod, cycle: number): void;
  /** Something changed: pods whose refusal it may lift, and that pass the check, go on. */
  wakeUp(event: ClusterEvent, check?: (pod: Pod) => boolean): void;
  /** Counts `pop`s; remember it before a cycle and hand it to `addUnschedulable`. */
  readonly cycle: number;
  readonly counts: { active: number; backoff: number; unschedulable: number };
  /** Moves on what has waited long enough; call it each second. */
  flush(): void;
  close(): void;
}

export interface SchedulingQueueOptions {
  readonly clock: Clock;
  readonly compare: (a: QueuedPodView, b: QueuedPodView) => number;
  /** May this event lift a refusal by this plugin? */
  readonly mayHelp: (plugin: string, event: ClusterEvent) => boolean;
  /** Told of each pod that comes into a part of the queue, and why. */
  readonly incoming?: ((part: "active" | "backoff" | "unschedulable", why: string) => void) | undefined;
  readonly initialBackoffMs?: number;
  readonly maxBackoffMs?: number;
}

/** A pod that no event woke for so long is tried again all the same. */
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
  /** The cycle in which something last changed: a pod refused in it has not seen the change. */
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
        // In a cycle, or bound; when the cycle fails it reads the newest pod itself.
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

/** A pod that the check cannot read is tried: it must not keep those behind it from being woken. */
function passes(pod: Pod, check: ((pod: Pod) => boolean) | undefined): boolean {
  try {
    return check?.(pod) !== false;
  } catch {
    return true;
  }
}

/** Our own writes of conditions must not make a pod look new. Source: isPodUpdated */
function isMoreThanStatus(old: Pod, now: Pod): boolean {
  const strip = ({ metadata: { resourceVersion: _, managedFields: __, ...metadata }, spec }: Pod): unknown => ({
    metadata,
    spec,
  });
  return !semanticEqual(strip(old), strip(now));
}
