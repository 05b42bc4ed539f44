import type { Clock } from "../process/clock/clock.ts";
import { exponentialBuckets, type MetricsRegistry } from "../process/metrics/registry.ts";
import type { QueueObserver } from "./queue.ts";

/** Registers upstream's workqueue metrics. @returns a function that creates the observer of a queue by its name */
export function queueMetrics(
  registry: MetricsRegistry,
  clock: Clock,
): <K>(name: string) => QueueObserver<K> & { retried(): void } {
  const unfinished: ((now: number) => { name: string; total: number; longest: number })[] = [];
  const buckets = exponentialBuckets(10e-9, 10, 10);
  const labels = ["name"];
  const depth = registry.gauge({ name: "workqueue_depth", help: "Current depth of workqueue", labels });
  const adds = registry.counter({ name: "workqueue_adds_total", help: "Total number of adds handled by workqueue", labels });
  const retries = registry.counter({
    name: "workqueue_retries_total",
    help: "Total number of retries handled by workqueue",
    labels,
  });
  const waited = registry.histogram({
    name: "workqueue_queue_duration_seconds",
    help: "How long in seconds an item stays in workqueue before being requested.",
    labels,
    buckets,
  });
  const worked = registry.histogram({
    name: "workqueue_work_duration_seconds",
    help: "How long in seconds processing an item from workqueue takes.",
    labels,
    buckets,
  });
  registry.gauge({
    name: "workqueue_unfinished_work_seconds",
    help: "How many seconds of work has been done that is in progress and hasn't been observed by work_duration. Large values indicate stuck threads. One can deduce the number of stuck threads by observing the rate at which this increases.",
    labels,
    collect(gauge) {
      for (const look of unfinished) {
        const { name, total } = look(clock.monotonic());
        gauge.labels(name).set(total / 1000);
      }
    },
  });
  registry.gauge({
    name: "workqueue_longest_running_processor_seconds",
    help: "How many seconds has the longest running processor for workqueue been running.",
    labels,
    collect(gauge) {
      for (const look of unfinished) {
        const { name, longest } = look(clock.monotonic());
        gauge.labels(name).set(longest / 1000);
      }
    },
  });

  return <K>(name: string): QueueObserver<K> & { retried(): void } => {
    const [ownDepth, ownAdds, ownRetries] = [depth.labels(name), adds.labels(name), retries.labels(name)];
    const [ownWaited, ownWorked] = [waited.labels(name), worked.labels(name)];
    const addedAt = new Map<K, number>();
    const startedAt = new Map<K, number>();
    unfinished.push((now) => {
      const running = [...startedAt.values()].map((start) => now - start);
      return { name, total: running.reduce((sum, ms) => sum + ms, 0), longest: Math.max(0, ...running) };
    });
    return {
      added(key, length) {
        ownAdds.inc();
        ownDepth.set(length);
        addedAt.set(key, clock.monotonic());
      },
      got(key, length) {
        ownDepth.set(length);
        const now = clock.monotonic();
        ownWaited.observe((now - (addedAt.get(key) ?? now)) / 1000);
        addedAt.delete(key);
        startedAt.set(key, now);
      },
      done(key) {
        const now = clock.monotonic();
        ownWorked.observe((now - (startedAt.get(key) ?? now)) / 1000);
        startedAt.delete(key);
      },
      retried: () => ownRetries.inc(),
    };
  };
}
