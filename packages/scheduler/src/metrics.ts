import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { HistogramChild, MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import type { CycleTimer, EndOfPoint, PluginTimer } from "./framework/cycle-timer.ts";
import type { Status } from "./framework/status.ts";
import definitions from "./metrics.json" with { type: "json" };
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
  /** Registers what reports the sizes; it is called for each scrape. */
  readSizes(read: () => Sizes): void;
}

/** Numbers of pods in the parts of the queue, and of objects in the cache. */
interface Sizes {
  readonly queue: { readonly active: number; readonly backoff: number; readonly unschedulable: number };
  readonly cache: { readonly nodes: number; readonly pods: number; readonly assumedPods: number };
}

/** Percentage of cycles in which single plugins are measured. Source: scheduler.go pluginMetricsSamplePercent */
const pluginSamplePercent = 10;

/** @param random decides which cycles are sampled for plugin durations */
export function newSchedulerMetrics(
  registry: MetricsRegistry,
  clock: Clock,
  random: () => number = Math.random,
): SchedulerMetrics {
  return new RegisteredMetrics(registry, clock, random);
}

class RegisteredMetrics implements SchedulerMetrics {
  readonly #metrics: ReturnType<typeof register>;
  #readSizes: (() => Sizes) | undefined;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #plugins: PluginTimer;
  /** Series of successful calls by point and plugin: they are needed for hundreds of nodes in a cycle. */
  readonly #succeeded = new Map<string, Map<string, HistogramChild>>();
  /** Series of successful extension points by profile and name: a pod passes nine of them. */
  readonly #passed = new Map<string, Map<string, HistogramChild>>();

  constructor(registry: MetricsRegistry, clock: Clock, random: () => number = Math.random) {
    this.#metrics = register(registry, () => this.#readSizes?.());
    this.#clock = clock;
    this.#random = random;
    this.#plugins = {
      now: () => clock.monotonic(),
      plugin: (name, point, status, beginMs) => {
        const endMs = clock.monotonic();
        this.#ofPlugin(name, point, status).observe((endMs - beginMs) / 1000);
        return endMs;
      },
    };
  }

  attempted(result: "scheduled" | "unschedulable" | "error", profile: string, beginMs: number): void {
    this.#metrics.attempts.labels(result, profile).inc();
    this.#metrics.attemptDuration.labels(result, profile).observe(this.#since(beginMs));
    this.#metrics.endToEnd.labels(result, profile).observe(this.#since(beginMs));
  }

  decided(beginMs: number): void {
    this.#metrics.algorithm.observe(this.#since(beginMs));
  }

  podScheduled(entry: QueuedPod, monotonicMs: number): void {
    this.#metrics.perPod
      .labels(entry.attempts >= 15 ? "15+" : String(entry.attempts))
      .observe((monotonicMs - entry.firstQueuedAtMs) / 1000);
    this.#metrics.podAttempts.observe(entry.attempts);
  }

  incoming(part: string, event: string): void {
    this.#metrics.queued.labels(part, event).inc();
  }

  binding(): () => void {
    this.#metrics.goroutines.labels("binding").inc();
    return () => this.#metrics.goroutines.labels("binding").dec();
  }

  cycle(profile: string): CycleTimer | undefined {
    return {
      plugins: this.#random() * 100 < pluginSamplePercent ? this.#plugins : undefined,
      begin: (name) => this.#beginPoint(profile, name),
      point: (name, run) => this.#timePoint(profile, name, run),
    };
  }

  preemptionAttempted(): void {
    this.#metrics.preemptions.inc();
  }

  preempted(count: number): void {
    this.#metrics.victims.observe(count);
  }

  volumeStageFailed(operation: "predicate" | "assume" | "bind"): void {
    this.#metrics.volumeFailures.labels(operation).inc();
  }

  readSizes(read: () => Sizes): void {
    this.#readSizes = read;
  }

  #since(beginMs: number): number {
    return (this.#clock.monotonic() - beginMs) / 1000;
  }

  #ofPlugin(name: string, point: string, status: Status | undefined): HistogramChild {
    const { pluginDuration } = this.#metrics;
    if (status !== undefined) return pluginDuration.labels(name, point, status.code);
    return this.#succeeded
      .getOrInsertComputed(point, () => new Map())
      .getOrInsertComputed(name, () => pluginDuration.labels(name, point, "Success"));
  }

  #ofPoint(profile: string, name: string, status: string): HistogramChild {
    const { points } = this.#metrics;
    if (status !== "Success") return points.labels(name, status, profile);
    return this.#passed
      .getOrInsertComputed(profile, () => new Map())
      .getOrInsertComputed(name, () => points.labels(name, status, profile));
  }

  #beginPoint(profile: string, name: string): EndOfPoint {
    const beginMs = this.#clock.monotonic();
    return (...outcome) =>
      this.#ofPoint(profile, name, outcome.length === 0 ? "Error" : codeOf(outcome[0])).observe(this.#since(beginMs));
  }

  #timePoint<T>(profile: string, name: string, run: () => T): T {
    const end = this.#beginPoint(profile, name);
    try {
      const outcome = run();
      if (outcome instanceof Promise) void outcome.then(end, () => end());
      else end(outcome);
      return outcome;
    } catch (err) {
      end();
      throw err;
    }
  }
}

/** The code of a Status or of a result with a status; "Success" when there is none. */
function codeOf(outcome: unknown): string {
  const { code, status }: { code?: unknown; status?: unknown } = outcome ?? {};
  if (typeof code === "string") return code;
  return status === undefined ? "Success" : codeOf(status);
}

/** Metrics that record nothing. */
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
  readSizes() {},
};

/** @param sizes undefined before pods are scheduled */
function register(registry: MetricsRegistry, sizes: () => Sizes | undefined) {
  return {
    attempts: registry.counter(definitions.scheduler_schedule_attempts_total),
    attemptDuration: registry.histogram(definitions.scheduler_scheduling_attempt_duration_seconds),
    endToEnd: registry.histogram(definitions.scheduler_e2e_scheduling_duration_seconds),
    algorithm: registry.histogram(definitions.scheduler_scheduling_algorithm_duration_seconds),
    victims: registry.histogram(definitions.scheduler_preemption_victims),
    preemptions: registry.counter(definitions.scheduler_preemption_attempts_total),
    pending: registry.gauge({
      ...definitions.scheduler_pending_pods,
      collect(gauge) {
        for (const [name, size] of Object.entries(sizes()?.queue ?? {})) gauge.labels(name).set(size);
      },
    }),
    goroutines: registry.gauge(definitions.scheduler_scheduler_goroutines),
    perPod: registry.histogram(definitions.scheduler_pod_scheduling_duration_seconds),
    podAttempts: registry.histogram(definitions.scheduler_pod_scheduling_attempts),
    points: registry.histogram(definitions.scheduler_framework_extension_point_duration_seconds),
    pluginDuration: registry.histogram(definitions.scheduler_plugin_execution_duration_seconds),
    queued: registry.counter(definitions.scheduler_queue_incoming_pods_total),
    cached: registry.gauge({
      ...definitions.scheduler_scheduler_cache_size,
      collect(gauge) {
        const { nodes, pods, assumedPods } = sizes()?.cache ?? {};
        for (const [name, size] of Object.entries({ nodes, pods, assumed_pods: assumedPods }))
          if (size !== undefined) gauge.labels(name).set(size);
      },
    }),
    volumeFailures: registry.counter(definitions.scheduler_volume_scheduling_stage_error_total),
  };
}
