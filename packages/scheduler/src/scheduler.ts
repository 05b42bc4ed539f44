import type { Client } from "@coxswain/apimachinery/client/client";
import type { Clock } from "@coxswain/apimachinery/clock/clock";
import type { EventRecorder } from "@coxswain/apimachinery/controller/event-recorder";
import { isNotFound } from "@coxswain/apimachinery/errors/predicates";
import type { InformerFactory } from "@coxswain/apimachinery/informers/factory";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import { semanticEqual } from "@coxswain/apimachinery/meta/deep-equal";
import { keyOf } from "@coxswain/apimachinery/meta/object-key";
import { formatTime } from "@coxswain/apimachinery/meta/time";
import type { Node, Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { nodes, pods } from "@coxswain/apimachinery/schema/kinds/resources";
import { bindPod, reserve } from "./binding-cycle.ts";
import { newClusterCache } from "./cache/cluster-cache.ts";
import { newPodInfo, type PodInfo } from "./cache/node-info.ts";
import type { CycleState } from "./framework/cycle-state.ts";
import type { ClusterEvent } from "./framework/extension-points.ts";
import { compareWith, mayHelp, type Profile } from "./framework/profile.ts";
import { FitError } from "./framework/status.ts";
import type { SchedulerMetrics } from "./metrics.ts";
import { newSchedulingQueue, type QueuedPod } from "./queue/scheduling-queue.ts";
import { decide } from "./scheduling-cycle.ts";

export interface SchedulerOptions {
  readonly client: Client;
  readonly informers: InformerFactory;
  readonly profiles: readonly Profile[];
  readonly recorder: EventRecorder;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: SchedulerMetrics;
  readonly percentageOfNodesToScore?: number;
  readonly podInitialBackoffMs?: number;
  readonly podMaxBackoffMs?: number;
  readonly random?: () => number;
}

export interface Scheduler {
  /** Schedules until the signal is aborted. Informers have to be started by the caller. */
  run(signal: AbortSignal): Promise<void>;
}

const flushPeriodMs = 1_000;

/**
 * Gives each pod that names one of our profiles a node: next pod → decide → assume → bind. Deciding is one pod at a time;
 * binding goes on beside it.
 * Source: pkg/scheduler/scheduler.go
 */
export function newScheduler(options: SchedulerOptions): Scheduler {
  const {
    client,
    informers,
    profiles,
    recorder,
    clock,
    log,
    metrics,
    percentageOfNodesToScore = 0,
    random = Math.random,
  } = options;
  const byName = new Map(profiles.map((profile) => [profile.schedulerName, profile]));
  const [firstProfile] = profiles;
  if (firstProfile === undefined) throw new Error("a scheduler needs a profile");
  const cache = newClusterCache(clock);
  const queue = newSchedulingQueue({
    clock,
    compare: compareWith(firstProfile),
    mayHelp: (plugin, event) => mayHelp(profiles, plugin, event),
    initialBackoffMs: options.podInitialBackoffMs,
    maxBackoffMs: options.podMaxBackoffMs,
  });
  const podInformer = informers.for<Pod>(pods, { fieldSelector: "status.phase!=Succeeded,status.phase!=Failed" });
  const nodeInformer = informers.for<Node>(nodes);
  let startIndex = 0;

  const isOurs = (pod: Pod): boolean => byName.has(pod.spec.schedulerName ?? "default-scheduler");

  podInformer.addHandler({
    added(pod) {
      if (pod.spec.nodeName) {
        cache.setPod(pod);
        queue.wakeUp("Pod/Add");
      } else if (isOurs(pod)) queue.add(pod);
    },
    updated(old, pod) {
      if (pod.spec.nodeName) {
        if (!old.spec.nodeName) queue.delete(pod);
        cache.setPod(pod);
        queue.wakeUp("Pod/Update");
      } else if (isOurs(pod) && old !== pod && !cache.isAssumed(pod)) queue.update(old, pod);
    },
    deleted(pod) {
      if (pod.spec.nodeName) {
        cache.removePod(pod);
        queue.wakeUp("Pod/Delete");
      } else {
        queue.delete(pod);
        cache.forget(pod);
      }
    },
  });
  nodeInformer.addHandler({
    added(node) {
      cache.setNode(node);
      queue.wakeUp("Node/Add");
    },
    updated(old, node) {
      cache.setNode(node);
      const event = nodeChange(old, node);
      if (event !== undefined) queue.wakeUp(event);
    },
    deleted: (node) => cache.removeNode(node),
  });

  /** The pod as the API shows it now, unless it needs no node any more. */
  const stillWaiting = (entry: QueuedPod): Pod | undefined => {
    const pod = podInformer.lister.get(keyOf(entry.pod));
    if (pod === undefined || pod.metadata.uid !== entry.pod.metadata.uid || pod.spec.nodeName) return undefined;
    return pod;
  };

  const refuse = async (entry: QueuedPod, cycle: number, err: unknown): Promise<void> => {
    const fit = err instanceof FitError ? err : undefined;
    const message = err instanceof Error ? err.message : String(err);
    metrics.attempted(fit === undefined ? "error" : "unschedulable", profileOf(entry.pod), clock.monotonic());
    if (fit === undefined) log.error("cannot schedule pod; it goes on waiting", err, { pod: keyOf(entry.pod) });
    else log.v(2)?.info("unable to schedule pod; no fit; waiting", { pod: keyOf(entry.pod), err: message });
    const current = stillWaiting(entry);
    if (current === undefined) return;
    entry.pod = current;
    entry.unschedulablePlugins = fit?.unschedulablePlugins ?? new Set();
    queue.addUnschedulable(entry, cycle);
    recorder.event(current, "Warning", "FailedScheduling", message);
    try {
      await setUnscheduled(client, current, fit === undefined ? "SchedulerError" : "Unschedulable", message, clock.now());
    } catch (failure) {
      if (!isNotFound(failure))
        log.error("cannot update the condition of a pod that does not fit", failure, { pod: keyOf(current) });
    }
  };

  const profileOf = (pod: Pod): string => pod.spec.schedulerName ?? "default-scheduler";

  const bind = async (
    profile: Profile,
    state: CycleState,
    entry: QueuedPod,
    info: PodInfo,
    nodeName: string,
    cycle: number,
    begin: number,
  ): Promise<void> => {
    const { pod } = info;
    try {
      const refusal = await bindPod(profile, state, info, nodeName);
      if (refusal !== undefined) throw new Error(refusal.reasons.join(", "));
      cache.finishBinding(pod);
      metrics.attempted("scheduled", profile.schedulerName, begin);
      metrics.podScheduled(entry, clock.now());
      log.v(2)?.info("successfully bound pod to node", { pod: keyOf(pod), node: nodeName });
      recorder.event(pod, "Normal", "Scheduled", `Successfully assigned ${keyOf(pod)} to ${nodeName}`);
    } catch (err) {
      cache.forget(pod);
      // What it was to take is free again.
      queue.wakeUp("Pod/Delete");
      await refuse(entry, cycle, err);
    }
  };

  /** One cycle, without an await between the look at the cluster and `assume`. */
  const schedule = (entry: QueuedPod): void => {
    const cycle = queue.cycle;
    const current = stillWaiting(entry);
    if (current === undefined || current.metadata.deletionTimestamp || cache.isAssumed(current)) return;
    const profile = byName.get(profileOf(current));
    if (profile === undefined) return;
    const begin = clock.monotonic();
    const info = newPodInfo(current);
    const state: CycleState = new Map();
    try {
      const decision = decide(profile, state, info, cache.snapshot(), { percentageOfNodesToScore, startIndex, random });
      startIndex = decision.nextStartIndex;
      cache.assume(info, decision.nodeName);
      const refusal = reserve(profile, state, info, decision.nodeName);
      if (refusal !== undefined) {
        cache.forget(current);
        throw new Error(refusal.reasons.join(", "));
      }
      metrics.decided(profile.schedulerName, begin);
      void bind(profile, state, entry, info, decision.nodeName, cycle, begin);
    } catch (err) {
      void refuse(entry, cycle, err);
    }
  };

  return {
    async run(signal) {
      await informers.waitForSync(signal);
      const flushing = clock.every(flushPeriodMs, () => {
        queue.flush();
        metrics.queueSizes(queue.counts, cache.counts);
      });
      const close = (): void => queue.close();
      signal.addEventListener("abort", close, { once: true });
      try {
        for (let decided = 1; !signal.aborted; decided++) {
          const entry = await queue.pop();
          if (entry === undefined) return;
          schedule(entry);
          // Lets answers and watch events in between: a queue of thousands must not hold up the loop.
          if (decided % 16 === 0) await new Promise((resolve) => setImmediate(resolve));
        }
      } finally {
        flushing.cancel();
        signal.removeEventListener("abort", close);
      }
    },
  };
}

/** What of a node changed, when it can make a pod fit. Source: eventhandlers.go nodeSchedulingPropertiesChange */
export function nodeChange(old: Node, node: Node): ClusterEvent | undefined {
  if (old.spec?.unschedulable && !node.spec?.unschedulable) return "Node/UpdateTaint";
  if (!semanticEqual(old.status?.allocatable, node.status?.allocatable)) return "Node/UpdateAllocatable";
  if (!semanticEqual(old.metadata.labels, node.metadata.labels)) return "Node/UpdateLabel";
  if (!semanticEqual(old.spec?.taints, node.spec?.taints)) return "Node/UpdateTaint";
  const conditions = (of: Node): unknown =>
    Object.fromEntries((of.status?.conditions ?? []).map(({ type, status }) => [type, status]));
  return semanticEqual(conditions(old), conditions(node)) ? undefined : "Node/UpdateCondition";
}

async function setUnscheduled(client: Client, pod: Pod, reason: string, message: string, nowMs: number): Promise<void> {
  const before = pod.status?.conditions?.find(({ type }) => type === "PodScheduled");
  if (before?.status === "False" && before.reason === reason && before.message === message) return;
  const lastTransitionTime = before?.status === "False" ? before.lastTransitionTime : formatTime(nowMs);
  const condition = { type: "PodScheduled", status: "False", reason, message, lastProbeTime: null, lastTransitionTime };
  const target = { namespace: pod.metadata.namespace, name: pod.metadata.name ?? "", subresource: "status" };
  await client.patch(pods, target, {
    type: "strategic",
    body: { metadata: { uid: pod.metadata.uid }, status: { conditions: [condition] } },
  });
}
