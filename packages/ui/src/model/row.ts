/** What the page knows of each object: a few fields, made by the worker from the object (`kinds.ts`). */

/** Resource and group as in `/debug/explain`: `pods`, `deployments.apps`. */
export type Resource = keyof typeof kindNames;

export const kindNames = {
  nodes: "Node",
  pods: "Pod",
  "deployments.apps": "Deployment",
  "replicasets.apps": "ReplicaSet",
  "statefulsets.apps": "StatefulSet",
  "daemonsets.apps": "DaemonSet",
  "jobs.batch": "Job",
  "cronjobs.batch": "CronJob",
  services: "Service",
  persistentvolumeclaims: "PersistentVolumeClaim",
  "horizontalpodautoscalers.autoscaling": "HorizontalPodAutoscaler",
  namespaces: "Namespace",
  events: "Event",
} as const;

/**
 * `good`: as wanted; `moving`: on its way; `bad`: something is wrong; `idle`: nothing is wanted of it (a Job that is complete,
 * a Deployment of 0).
 */
export type Health = "good" | "moving" | "bad" | "idle";

export interface Row {
  readonly resource: Resource;
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  /** Milliseconds since the epoch. */
  readonly createdMs: number;
  /** uid of the controlling owner, `""` for none. */
  readonly owner: string;
  readonly health: Health;
  /** Since when it is moving; 0 where that is no fault however long it lasts. */
  readonly sinceMs: number;
  /** A word or two, as kubectl's STATUS column. */
  readonly status: string;
}

export interface PodRow extends Row {
  readonly resource: "pods";
  /** `""` while it has none. */
  readonly node: string;
  readonly ready: number;
  readonly containers: number;
  readonly restarts: number;
  /** What it requests, in thousandths of a core and in bytes. */
  readonly cpuMilli: number;
  readonly memoryBytes: number;
}

export interface NodeRow extends Row {
  readonly resource: "nodes";
  readonly roles: string;
  readonly version: string;
  readonly address: string;
  /** Allocatable. */
  readonly cpuMilli: number;
  readonly memoryBytes: number;
  readonly pods: number;
}

export interface WorkloadRow extends Row {
  readonly resource: WorkloadResource;
  readonly wanted: number;
  readonly ready: number;
  /** Those of them that are of the newest revision. */
  readonly updatedReady: number;
  /** Of the newest revision, ready or not. */
  readonly updated: number;
  readonly images: string;
}

type WorkloadResource =
  | "deployments.apps"
  | "replicasets.apps"
  | "statefulsets.apps"
  | "daemonsets.apps"
  | "jobs.batch"
  | "cronjobs.batch";

export interface EventRow extends Row {
  readonly resource: "events";
  readonly isWarning: boolean;
  readonly reason: string;
  readonly message: string;
  readonly count: number;
  readonly lastMs: number;
  readonly source: string;
  /** uid of the object it is about. */
  readonly about: string;
  readonly aboutKind: string;
  readonly aboutName: string;
  readonly aboutNamespace: string;
}

export const isPod = (row: Row): row is PodRow => row.resource === "pods";
export const isNode = (row: Row): row is NodeRow => row.resource === "nodes";
export const isEvent = (row: Row): row is EventRow => row.resource === "events";
export const isWorkload = (row: Row): row is WorkloadRow => "wanted" in row;
