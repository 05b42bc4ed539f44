/** The fields of an object that the page shows; the worker computes them from the object (`kinds.ts`). */

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
 * `good`: in the desired state; `moving`: in transition; `bad`: a problem; `idle`: nothing to do (a complete Job, a Deployment
 * with 0 replicas).
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
  /** Start of the transition, in ms since the epoch; 0 when a transition of any length is no problem. */
  readonly sinceMs: number;
  /** Short text like kubectl's STATUS column. */
  readonly status: string;
}

export interface PodRow extends Row {
  readonly resource: "pods";
  /** `""` without a node. */
  readonly node: string;
  readonly ready: number;
  readonly containers: number;
  readonly restarts: number;
  /** Requests in millicores and bytes. */
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
  readonly desired: number;
  readonly ready: number;
  /** Ready pods of the newest revision. */
  readonly updatedReady: number;
  /** Pods of the newest revision, ready or not. */
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
  /** uid of the object that the event refers to. */
  readonly about: string;
  readonly aboutKind: string;
  readonly aboutName: string;
  readonly aboutNamespace: string;
}

export const isPod = (row: Row): row is PodRow => row.resource === "pods";
export const isNode = (row: Row): row is NodeRow => row.resource === "nodes";
export const isEvent = (row: Row): row is EventRow => row.resource === "events";
export const isWorkload = (row: Row): row is WorkloadRow => "desired" in row;
