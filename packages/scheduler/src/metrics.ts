import type { Clock } from "@coxswain/apimachinery/clock/clock";
import { exponentialBuckets, linearBuckets, type MetricsRegistry } from "@coxswain/apimachinery/metrics/registry";
import type { CycleTimer, PluginTimer } from "./framework/cycle-timer.ts";
import type { QueuedPod } from "./queue/scheduling-queue.ts";

/** The scheduler's metrics, with upstream's names. Source: pkg/scheduler/metrics/metrics.go */
export interface SchedulerMetrics {
  attempted(result: "scheduled" | "unschedulable" | "error", profile: string, beginMs: number): void;
  /** Observes the latency of the scheduling algorithm, once a node was chosen. */
  decided(beginMs: number): void;
  podScheduled(entry: QueuedPod, monotonicMs: number): void;
  /** Counts a pod that was added to a sub-queue. */
  incoming(part: string, event: string): void;
  /** Counts a running binding. @returns to be called when the binding has ended */
  binding(): () => void;
  /** Timer for one cycle; undefined when metrics are off. */
  cycle(profile: string): CycleTimer | undefined;
  preemptionAttempted(): void;
  preempted(victims: number): void;
  volumeStageFailed(operation: "predicate" | "assume" | "bind"): void;
  queueSizes(
    queue: { active: number; backoff: number; unschedulable: number },
    cache: { nodes: number; pods: number; assumedPods: number },
  ): void;
}

/** Percentage of cycles in which single plugins are measured. Source: scheduler.go pluginMetricsSamplePercent */
const pluginSamplePercent = 10;

/** @param random decides which cycles are sampled for plugin durations */
export function newSchedulerMetrics(
  registry: MetricsRegistry,
  clock: Clock,
  random: () => number = Math.random,
): SchedulerMetrics {
  const seconds = exponentialBuckets(0.001, 2, 15);
  const stable = { stability: "STABLE" } as const;
  const attempts = registry.counter({
    ...stable,
    name: "scheduler_schedule_attempts_total",
    help: "Number of attempts to schedule pods, by the result. 'unschedulable' means a pod could not be scheduled, while 'error' means an internal scheduler problem.",
    labels: ["result", "profile"],
  });
  const attemptDuration = registry.histogram({
    ...stable,
    name: "scheduler_scheduling_attempt_duration_seconds",
    help: "Scheduling attempt latency in seconds (scheduling algorithm + binding)",
    labels: ["result", "profile"],
    buckets: seconds,
  });
  const endToEnd = registry.histogram({
    name: "scheduler_e2e_scheduling_duration_seconds",
    deprecatedSince: "1.23.0",
    help: "E2e scheduling latency in seconds (scheduling algorithm + binding). This metric is replaced by scheduling_attempt_duration_seconds.",
    labels: ["result", "profile"],
    buckets: seconds,
  });
  const algorithm = registry.histogram({
    name: "scheduler_scheduling_algorithm_duration_seconds",
    help: "Scheduling algorithm latency in seconds",
    buckets: seconds,
  });
  const victims = registry.histogram({
    ...stable,
    name: "scheduler_preemption_victims",
    help: "Number of selected preemption victims",
    buckets: linearBuckets(5, 5, 10),
  });
  const preemptions = registry.counter({
    ...stable,
    name: "scheduler_preemption_attempts_total",
    help: "Total preemption attempts in the cluster till now",
  });
  const pending = registry.gauge({
    ...stable,
    name: "scheduler_pending_pods",
    help: "Number of pending pods, by the queue type. 'active' means number of pods in activeQ; 'backoff' means number of pods in backoffQ; 'unschedulable' means number of pods in unschedulableQ.",
    labels: ["queue"],
  });
  const goroutines = registry.gauge({
    name: "scheduler_scheduler_goroutines",
    help: "Number of running goroutines split by the work they do such as binding.",
    labels: ["work"],
  });
  const perPod = registry.histogram({
    ...stable,
    name: "scheduler_pod_scheduling_duration_seconds",
    help: "E2e latency for a pod being scheduled which may include multiple scheduling attempts.",
    labels: ["attempts"],
    buckets: exponentialBuckets(0.01, 2, 20),
  });
  const podAttempts = registry.histogram({
    ...stable,
    name: "scheduler_pod_scheduling_attempts",
    help: "Number of attempts to successfully schedule a pod.",
    buckets: exponentialBuckets(1, 2, 5),
  });
  const points = registry.histogram({
    ...stable,
    name: "scheduler_framework_extension_point_duration_seconds",
    help: "Latency for running all plugins of a specific extension point.",
    labels: ["extension_point", "status", "profile"],
    buckets: exponentialBuckets(0.0001, 2, 12),
  });
  const pluginDuration = registry.histogram({
    name: "scheduler_plugin_execution_duration_seconds",
    help: "Duration for running a plugin at a specific extension point.",
    labels: ["plugin", "extension_point", "status"],
    buckets: exponentialBuckets(0.00001, 1.5, 20),
  });
  const queued = registry.counter({
    ...stable,
    name: "scheduler_queue_incoming_pods_total",
    help: "Number of pods added to scheduling queues by event and queue type.",
    labels: ["queue", "event"],
  });
  const cached = registry.gauge({
    name: "scheduler_scheduler_cache_size",
    help: "Number of nodes, pods, and assumed (bound) pods in the scheduler cache.",
    labels: ["type"],
  });
  const volumeFailures = registry.counter({
    name: "scheduler_volume_scheduling_stage_error_total",
    help: "Volume scheduling stage error count",
    labels: ["operation"],
  });
  const since = (beginMs: number): number => (clock.monotonic() - beginMs) / 1000;
  const plugins: PluginTimer = {
    now: () => clock.monotonic(),
    plugin(name, point, status, beginMs) {
      if (beginMs !== undefined) pluginDuration.labels(name, point, status?.code ?? "Success").observe(since(beginMs));
    },
  };
  const timePoint = <T>(profile: string, name: string, run: () => T): T => {
    const begin = clock.monotonic();
    const end = (status: string): void => points.labels(name, status, profile).observe(since(begin));
    try {
      const outcome = run();
      if (outcome instanceof Promise) {
        void outcome.then(
          (late: unknown) => end(codeOf(late)),
          () => end("Error"),
        );
      } else end(codeOf(outcome));
      return outcome;
    } catch (err) {
      end("Error");
      throw err;
    }
  };
  return {
    attempted(result, profile, beginMs) {
      attempts.labels(result, profile).inc();
      attemptDuration.labels(result, profile).observe(since(beginMs));
      endToEnd.labels(result, profile).observe(since(beginMs));
    },
    decided: (beginMs) => algorithm.observe(since(beginMs)),
    podScheduled(entry, monotonicMs) {
      perPod.labels(entry.attempts >= 15 ? "15+" : String(entry.attempts)).observe((monotonicMs - entry.firstQueuedAtMs) / 1000);
      podAttempts.observe(entry.attempts);
    },
    incoming: (part, event) => queued.labels(part, event).inc(),
    binding() {
      goroutines.labels("binding").inc();
      return () => goroutines.labels("binding").dec();
    },
    cycle: (profile) => ({
      plugins: random() * 100 < pluginSamplePercent ? plugins : undefined,
      point: (name, run) => timePoint(profile, name, run),
    }),
    preemptionAttempted: () => preemptions.inc(),
    preempted: (count) => victims.observe(count),
    volumeStageFailed: (operation) => volumeFailures.labels(operation).inc(),
    queueSizes(queue, cache) {
      for (const [name, size] of Object.entries(queue)) pending.labels(name).set(size);
      cached.labels("nodes").set(cache.nodes);
      cached.labels("pods").set(cache.pods);
      cached.labels("assumed_pods").set(cache.assumedPods);
    },
  };
}

/** The code of a Status or of a result with a status; "Success" when there is none. */
function codeOf(outcome: unknown): string {
  const { code, status } = (outcome ?? {}) as { code?: unknown; status?: unknown };
  if (typeof code === "string") return code;
  return status === undefined ? "Success" : codeOf(status);
}

/** For tests. */
export const noMetrics: SchedulerMetrics = {
  attempted() {},
  decided() {},
  podScheduled() {},
  incoming() {},
  binding: () => () => {},
  cycle: () => undefined,
  preemptionAttempted() {},
  preempted() {},
  volumeStageFailed() {},
  queueSizes() {},
};
