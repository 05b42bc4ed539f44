/**
 * Metrics of encryption at rest, under upstream's names.
 * Source: k8s.io/apiserver pkg/storage/value/metrics.go, pkg/storage/value/encrypt/envelope/metrics.go
 */
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import definitions from "../../metrics.json" with { type: "json" };
import { KmsError } from "./kms-service.ts";

export type Direction = "from_storage" | "to_storage";

export interface EncryptionMetrics {
  /**
   * A value was transformed by a provider, or by one of its keys.
   * @param prefix prefix of the values, `k8s:enc:aescbc:v1:` or `key1:`; empty for plain text
   * @param err set when the transformation failed; a KmsError has a gRPC code
   */
  transformed(direction: Direction, prefix: string, seconds: number, err?: unknown): void;
  /** A KMS provider was called for a value. */
  arrived(direction: Direction): void;
  dataKeyMade(seconds: number): void;
  /** A data key was not cached. */
  dataKeyMissed(): void;
  /** @param share used part of the data key cache, 0 to 1 */
  dataKeysKept(share: number): void;
}

/** Returns undefined until the server has created its metrics. */
export type EncryptionMetricsOf = () => EncryptionMetrics | undefined;

const doubling = (first: number, count: number): number[] => Array.from({ length: count }, (_, i) => first * 2 ** i);

/** Registers the metrics. @param clock for the intervals between calls of a KMS provider */
export function newEncryptionMetrics(registry: MetricsRegistry, clock: Clock): EncryptionMetrics {
  const durations = registry.histogram({
    name: "apiserver_storage_transformation_duration_seconds",
    help: "Latencies in seconds of value transformation operations.",
    labels: ["transformation_type"],
    buckets: doubling(5e-6, 14),
  });
  const operations = registry.counter(definitions.apiserver_storage_transformation_operations_total);
  const misses = registry.counter(definitions.apiserver_storage_envelope_transformation_cache_misses_total);
  const dataKeys = registry.histogram({
    name: "apiserver_storage_data_key_generation_duration_seconds",
    help: "Latencies in seconds of data encryption key(DEK) generation operations.",
    buckets: doubling(5e-6, 14),
  });
  // Never incremented, since randomBytes does not fail; registered because upstream exposes it.
  registry.counter(definitions.apiserver_storage_data_key_generation_failures_total);
  const kept = registry.gauge(definitions.apiserver_envelope_encryption_dek_cache_fill_percent);
  const arrivals = registry.histogram({
    name: "apiserver_envelope_encryption_dek_cache_inter_arrival_time_seconds",
    help: "Time (in seconds) of inter arrival of transformation requests.",
    labels: ["transformation_type"],
    buckets: doubling(60, 10),
  });
  const lastMs = new Map<Direction, number>();
  return {
    transformed(direction, prefix, seconds, err) {
      const status = err === undefined ? "OK" : err instanceof KmsError ? err.code : "Unknown";
      operations.labels(direction, prefix === "" && direction === "from_storage" ? "identity" : prefix, status).inc();
      if (err === undefined) durations.labels(direction).observe(seconds);
    },
    arrived(direction) {
      const now = clock.monotonic();
      arrivals.labels(direction).observe((now - (lastMs.get(direction) ?? now)) / 1000);
      lastMs.set(direction, now);
    },
    dataKeyMade: (seconds) => dataKeys.observe(seconds),
    dataKeyMissed: () => misses.inc(),
    dataKeysKept: (share) => kept.set(share),
  };
}
