import definitions from "../metrics.json" with { type: "json" };
import type { Clock } from "../process/clock/clock.ts";
import type { MetricsRegistry } from "../process/metrics/registry.ts";
import type { QueueObserver } from "./queue.ts";

/** Registers upstream's workqueue metrics. @returns a function that creates the observer of a queue by its name */
export function queueMetrics(
  registry: MetricsRegistry,
  clock: Clock,
): <K>(name: string) => QueueObserver<K> & { retried(): void } {
  const unfinished: ((now: number) => { name: string; total: number; longest: number })[] = [];
  const depth = registry.gauge(definitions.workqueue_depth);
  const adds = registry.counter(definitions.workqueue_adds_total);
  const retries = registry.counter(definitions.workqueue_retries_total);
  const waited = registry.histogram(definitions.workqueue_queue_duration_seconds);
  const worked = registry.histogram(definitions.workqueue_work_duration_seconds);
  registry.gauge({
    ...definitions.workqueue_unfinished_work_seconds,
    collect(gauge) {
      for (const look of unfinished) {
        const { name, total } = look(clock.monotonic());
        gauge.labels(name).set(total / 1000);
      }
    },
  });
  registry.gauge({
    ...definitions.workqueue_longest_running_processor_seconds,
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
