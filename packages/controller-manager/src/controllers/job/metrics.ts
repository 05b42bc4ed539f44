import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import definitions from "../../metrics.json" with { type: "json" };

/** Label `action` of the sync metrics; `reconciling`: expectations of earlier writes are not satisfied yet. */
export type SyncAction = "reconciling" | "tracking" | "pods_created" | "pods_deleted";
type Result = "success" | "error";
type Outcome = "succeeded" | "failed";

export interface JobMetrics {
  synced(mode: string, result: Result, action: SyncAction, seconds: number): void;
  finished(mode: string, outcome: Outcome): void;
  podsFinished(mode: string, outcome: Outcome, count: number): void;
}

/** Registers the metrics of the job controller. Source: pkg/controller/job/metrics/metrics.go */
export function newJobMetrics(registry: MetricsRegistry): JobMetrics {
  const durations = registry.histogram(definitions.job_controller_job_sync_duration_seconds);
  const syncs = registry.counter(definitions.job_controller_job_sync_total);
  const finished = registry.counter(definitions.job_controller_job_finished_total);
  const pods = registry.counter(definitions.job_controller_job_pods_finished_total);
  return {
    synced(mode, result, action, seconds) {
      durations.labels(mode, result, action).observe(seconds);
      syncs.labels(mode, result, action).inc();
    },
    finished: (mode, outcome) => finished.labels(mode, outcome).inc(),
    podsFinished: (mode, outcome, count) => pods.labels(mode, outcome).inc(count),
  };
}
