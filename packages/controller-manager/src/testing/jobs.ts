import type { OwnerReference } from "@coxswain/apimachinery/objects/meta/types";
import type {
  CronJob,
  CronJobSpec,
  Job,
  JobCondition,
  JobSpec,
  JobStatus,
} from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

interface JobOptions {
  readonly name?: string;
  readonly spec?: Partial<JobSpec>;
  readonly status?: JobStatus;
  readonly owner?: OwnerReference;
  readonly deletedAt?: string;
  /** Whether its Pods are tracked with finalizers. */
  readonly tracked?: boolean;
}

/** A Job as stored by the API server, with defaults, selector and labels. */
export function aJob(options: JobOptions = {}): Job {
  const { name = "work", spec, status = {}, owner, deletedAt, tracked = true } = options;
  const labels = { "controller-uid": `${name}-uid`, "job-name": name };
  return {
    apiVersion: "batch/v1",
    kind: "Job",
    metadata: {
      name,
      namespace: "default",
      uid: `${name}-uid`,
      creationTimestamp: "2021-12-31T23:59:00Z",
      labels,
      annotations: tracked ? { "batch.kubernetes.io/job-tracking": "" } : {},
      ...(owner && { ownerReferences: [owner] }),
      ...(deletedAt && { deletionTimestamp: deletedAt, finalizers: ["foregroundDeletion"] }),
    },
    spec: {
      parallelism: 1,
      completions: 1,
      backoffLimit: 6,
      completionMode: "NonIndexed",
      suspend: false,
      selector: { matchLabels: { "controller-uid": `${name}-uid` } },
      template: { metadata: { labels }, spec: { containers: [{ name: "main", image: "busybox" }], restartPolicy: "Never" } },
      ...spec,
    },
    status,
  };
}

/** A Complete or Failed condition with the given time. */
export function finishedAt(time: string, type: "Complete" | "Failed" = "Complete"): JobCondition {
  return { type, status: "True", lastProbeTime: time, lastTransitionTime: time };
}

interface JobPodOptions {
  readonly phase?: string;
  readonly index?: number | string;
  readonly withFinalizer?: boolean;
  readonly deletedAt?: string;
  readonly restarts?: number;
}

/** A Pod controlled by the Job. */
export function aJobPod(job: Job, name: string, options: JobPodOptions = {}): Pod {
  const { phase = "Running", index, withFinalizer = true, deletedAt, restarts = 0 } = options;
  const { metadata } = job;
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name,
      namespace: "default",
      uid: `${name}-uid`,
      creationTimestamp: "2021-12-31T23:59:00Z",
      ...(metadata.labels && { labels: metadata.labels }),
      ...(index !== undefined && { annotations: { "batch.kubernetes.io/job-completion-index": String(index) } }),
      ...(withFinalizer && { finalizers: ["batch.kubernetes.io/job-tracking"] }),
      ...(deletedAt && { deletionTimestamp: deletedAt }),
      ownerReferences: [
        {
          apiVersion: "batch/v1",
          kind: "Job",
          name: metadata.name ?? "",
          uid: metadata.uid ?? "",
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
    },
    spec: { containers: [{ name: "main", image: "busybox" }] },
    status: {
      phase,
      containerStatuses: [{ name: "main", ready: phase === "Running", restartCount: restarts, image: "busybox", imageID: "" }],
    },
  };
}

/** A CronJob with a schedule of every minute, created at 2022-01-01T00:00:00Z. */
export function aCronJob(
  options: { name?: string; spec?: Partial<CronJobSpec>; status?: CronJob["status"]; deletedAt?: string } = {},
): CronJob {
  const { name = "tick", spec, status = {}, deletedAt } = options;
  const { template } = aJob().spec;
  return {
    apiVersion: "batch/v1",
    kind: "CronJob",
    metadata: {
      name,
      namespace: "default",
      uid: `${name}-uid`,
      creationTimestamp: "2022-01-01T00:00:00Z",
      ...(deletedAt && { deletionTimestamp: deletedAt, finalizers: ["foregroundDeletion"] }),
    },
    spec: {
      schedule: "* * * * *",
      concurrencyPolicy: "Allow",
      suspend: false,
      successfulJobsHistoryLimit: 3,
      failedJobsHistoryLimit: 1,
      jobTemplate: { metadata: { labels: { app: "tick" }, annotations: { note: "kept" } }, spec: { template } },
      ...spec,
    },
    status,
  };
}
