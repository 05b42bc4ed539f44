import type { Clock } from "@coxswain/apimachinery/clock/clock";
import type { MetricsRegistry } from "@coxswain/apimachinery/metrics/registry";
import type { QueuedPod } from "./queue/scheduling-queue.ts";

/** What the scheduler counts, under upstream's names. Source: pkg/scheduler/metrics/metrics.go */
export interface SchedulerMetrics {
  attempted(result: "scheduled" | "unschedulable" | "error", profile: string, beginMs: number): void;
  /** A node was found and assumed. */
  decided(profile: string, beginMs: number): void;
  podScheduled(entry: QueuedPod, nowMs: number): void;
  queueSizes(
    queue: { active: number; backoff: number; unschedulable: number },
    cache: { nodes: number; pods: number; assumedPods: number },
  ): void;
}

const exponential = (start: number, factor: number, count: number): number[] =>
  Array.from({ length: count }, (_, i) => start * factor ** i);

export function newSchedulerMetrics(registry: MetricsRegistry, clock: Clock): SchedulerMetrics {
  const seconds = exponential(0.001, 2, 15);
  const attempts = registry.counter({
    name: "scheduler_schedule_attempts_total",
    help: "Attempts to schedule pods, by the result: 'unschedulable' fits nowhere, 'error' is a problem of the scheduler.",
    labels: ["result", "profile"],
  });
  const attemptDuration = registry.histogram({
    name: "scheduler_scheduling_attempt_duration_seconds",
    help: "Time of an attempt, decision and binding together.",
    labels: ["result", "profile"],
    buckets: seconds,
  });
  const endToEnd = registry.histogram({
    name: "scheduler_e2e_scheduling_duration_seconds",
    help: "Time of an attempt, decision and binding together; the older name.",
    labels: ["result", "profile"],
    buckets: seconds,
  });
  const algorithm = registry.histogram({
    name: "scheduler_scheduling_algorithm_duration_seconds",
    help: "Time to decide.",
    labels: [],
    buckets: seconds,
  });
  const perPod = registry.histogram({
    name: "scheduler_pod_scheduling_duration_seconds",
    help: "Time from a pod's first place in the queue to its binding, all attempts together.",
    labels: ["attempts"],
    buckets: exponential(0.01, 2, 20),
  });
  const podAttempts = registry.histogram({
    name: "scheduler_pod_scheduling_attempts",
    help: "Attempts that a scheduled pod needed.",
    labels: [],
    buckets: exponential(1, 2, 5),
  });
  const pending = registry.gauge({ name: "scheduler_pending_pods", help: "Pods that wait, by where.", labels: ["queue"] });
  const cached = registry.gauge({
    name: "scheduler_scheduler_cache_size",
    help: "Nodes, pods and assumed pods that the scheduler knows.",
    labels: ["type"],
  });
  const since = (beginMs: number): number => (clock.monotonic() - beginMs) / 1000;
  return {
    attempted(result, profile, beginMs) {
      attempts.labels(result, profile).inc();
      attemptDuration.labels(result, profile).observe(since(beginMs));
      endToEnd.labels(result, profile).observe(since(beginMs));
    },
    decided: (_, beginMs) => algorithm.labels().observe(since(beginMs)),
    podScheduled(entry, nowMs) {
      perPod.labels(entry.attempts > 15 ? "15+" : String(entry.attempts)).observe((nowMs - entry.firstQueuedAtMs) / 1000);
      podAttempts.labels().observe(entry.attempts);
    },
    queueSizes(queue, cache) {
      for (const [name, size] of Object.entries(queue)) pending.labels(name).set(size);
      cached.labels("nodes").set(cache.nodes);
      cached.labels("pods").set(cache.pods);
      cached.labels("assumed_pods").set(cache.assumedPods);
    },
  };
}

/** For tests. */
export const noMetrics: SchedulerMetrics = { attempted() {}, decided() {}, podScheduled() {}, queueSizes() {} };
