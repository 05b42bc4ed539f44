import { exponentialBuckets, type MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";

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
  const sync = ["completion_mode", "result", "action"];
  const durations = registry.histogram({
    name: "job_controller_job_sync_duration_seconds",
    help: "The time it took to sync a job",
    labels: sync,
    buckets: exponentialBuckets(0.004, 2, 15),
  });
  const syncs = registry.counter({ name: "job_controller_job_sync_total", help: "The number of job syncs", labels: sync });
  const finished = registry.counter({
    name: "job_controller_job_finished_total",
    help: "The number of finished job",
    labels: ["completion_mode", "result"],
  });
  const pods = registry.counter({
    name: "job_controller_job_pods_finished_total",
    help: "The number of finished Pods that are fully tracked",
    labels: ["completion_mode", "result"],
  });
  return {
    synced(mode, result, action, seconds) {
      durations.labels(mode, result, action).observe(seconds);
      syncs.labels(mode, result, action).inc();
    },
    finished: (mode, outcome) => finished.labels(mode, outcome).inc(),
    podsFinished: (mode, outcome, count) => pods.labels(mode, outcome).inc(count),
  };
}
