/**
 * Metrics recorded by handlers, under upstream's names: watches by kind, and deprecated APIs.
 * Source: k8s.io/apiserver pkg/endpoints/metrics/metrics.go
 */
import type { CounterChild, GaugeChild, HistogramChild, MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import definitions from "../metrics.json" with { type: "json" };
import type { ServedResource } from "./served-resources.ts";

export interface WatchMetrics {
  readonly watchers: GaugeChild;
  readonly events: CounterChild;
  readonly sizes: HistogramChild;
}

const labels = ["group", "version", "kind"];
const sizes = [1, 2, 4, 8, 16, 32, 64, 128].map((kib) => kib * 1024);

/** The watch metrics of one kind. */
export function watchMetricsOf(registry: MetricsRegistry, { kind: { group, version, kind } }: ServedResource): WatchMetrics {
  const gauge = registry.gauge(definitions.apiserver_registered_watchers);
  const counter = registry.counter(definitions.apiserver_watch_events_total);
  const histogram = registry.histogram({
    name: "apiserver_watch_events_sizes",
    help: "Watch event size distribution in bytes",
    labels,
    buckets: sizes,
  });
  return {
    watchers: gauge.labels(group, version, kind),
    events: counter.labels(group, version, kind),
    sizes: histogram.labels(group, version, kind),
  };
}

/** @param readers number of watches that received these frames */
export function countFrames(metrics: WatchMetrics | undefined, frames: readonly Buffer[], readers: number): void {
  metrics?.events.inc(frames.length * readers);
  for (const frame of frames) metrics?.sizes.observe(frame.length, readers);
}

/** @param removedRelease `1.25`, or `""` when none is set */
export function countDeprecated(
  registry: MetricsRegistry,
  { group, version, resource, subresource }: { group: string; version: string; resource: string; subresource: string },
  removedRelease: string,
): void {
  registry
    .gauge(definitions.apiserver_requested_deprecated_apis)
    .labels(group, version, resource, subresource, removedRelease)
    .set(1);
}
