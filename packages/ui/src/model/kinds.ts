/** The resources that the page shows: where each is listed, and how an object becomes a row. */
import { Quantity } from "@coxswain/apimachinery/objects/meta/quantity";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { DaemonSet, Deployment, ReplicaSet, StatefulSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import type { HorizontalPodAutoscaler } from "@coxswain/apimachinery/objects/schema/kinds/autoscaling/v1";
import type { CronJob, Job } from "@coxswain/apimachinery/objects/schema/kinds/batch/v1";
import type { Event, Namespace, Node, PersistentVolumeClaim, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { containersReady, podHealth, podStatus, restartsOf } from "./pod-status.ts";
import type { EventRow, Health, NodeRow, PodRow, Resource, Row, WorkloadRow } from "./row.ts";

export interface Kind {
  readonly resource: Resource;
  /** URL prefix: `/apis/apps/v1`. */
  readonly api: string;
  readonly plural: string;
  readonly namespaced: boolean;
  /** Number of newest objects to keep; undefined: all. */
  readonly most?: number;
  rowOf(object: KubeObject): Row;
}

const kind = <T extends KubeObject>(
  resource: Resource,
  api: string,
  describe: (object: T, base: Base) => Row,
  more: { readonly namespaced?: boolean; readonly most?: number } = {},
): Kind => ({
  resource,
  api,
  plural: resource.split(".")[0]!,
  namespaced: true,
  ...more,
  rowOf: (object) => describe(object as T, baseOf(resource, object)), // cast: the API server lists objects of T there
});

/** In request order: the resources of the first view come first. */
export const kinds: readonly Kind[] = [
  kind<Node>("nodes", "/api/v1", nodeRow, { namespaced: false }),
  kind<Pod>("pods", "/api/v1", podRow),
  kind<Namespace>("namespaces", "/api/v1", namespaceRow, { namespaced: false }),
  kind<Deployment>("deployments.apps", "/apis/apps/v1", deploymentRow),
  kind<ReplicaSet>("replicasets.apps", "/apis/apps/v1", replicaSetRow),
  kind<StatefulSet>("statefulsets.apps", "/apis/apps/v1", statefulSetRow),
  kind<DaemonSet>("daemonsets.apps", "/apis/apps/v1", daemonSetRow),
  kind<Job>("jobs.batch", "/apis/batch/v1", jobRow),
  kind<CronJob>("cronjobs.batch", "/apis/batch/v1", cronJobRow),
  kind<PersistentVolumeClaim>("persistentvolumeclaims", "/api/v1", claimRow),
  kind<HorizontalPodAutoscaler>("horizontalpodautoscalers.autoscaling", "/apis/autoscaling/v1", autoscalerRow),
  kind("services", "/api/v1", (_, base) => ({ ...base, health: "good", status: "" })),
  kind<Event>("events", "/api/v1", eventRow, { most: 5_000 }),
];

export const kindOf = (resource: string): Kind | undefined => kinds.find((one) => one.resource === resource);

type Base = Omit<Row, "health" | "status">;

function baseOf(resource: Resource, { metadata }: KubeObject): Base {
  return {
    resource,
    uid: metadata.uid ?? "",
    namespace: metadata.namespace ?? "",
    name: metadata.name ?? "",
    createdMs: timeOf(metadata.creationTimestamp),
    owner: metadata.ownerReferences?.find(({ controller }) => controller === true)?.uid ?? "",
    sinceMs: 0,
  };
}

function nodeRow({ metadata, spec, status }: Node, base: Base): NodeRow {
  const conditions = status?.conditions ?? [];
  const isReady = conditions.some(({ type, status: value }) => type === "Ready" && value === "True");
  const pressures = conditions.filter(({ type, status: value }) => type !== "Ready" && value === "True").map(({ type }) => type);
  const words = [isReady ? "Ready" : "NotReady", ...pressures, ...(spec?.unschedulable ? ["SchedulingDisabled"] : [])];
  const prefix = "node-role.kubernetes.io/";
  return {
    ...base,
    resource: "nodes",
    health: !isReady || pressures.length > 0 ? "bad" : spec?.unschedulable ? "moving" : "good",
    status: words.join(", "),
    roles: Object.keys(metadata?.labels ?? {})
      .filter((label) => label.startsWith(prefix))
      .map((label) => label.slice(prefix.length))
      .join(", "),
    version: status?.nodeInfo?.kubeletVersion ?? "",
    address: status?.addresses?.find(({ type }) => type === "InternalIP")?.address ?? "",
    cpuMilli: milli(status?.allocatable?.["cpu"]),
    memoryBytes: bytes(status?.allocatable?.["memory"]),
    pods: bytes(status?.allocatable?.["pods"]),
  };
}

function podRow(pod: Pod, base: Base): PodRow {
  const { spec } = pod;
  const requests = (name: "cpu" | "memory", parse: (text: string | undefined) => number): number => {
    const sum = spec.containers.reduce((all, { resources }) => all + parse(resources?.requests?.[name]), 0);
    const largestInit = Math.max(0, ...(spec.initContainers ?? []).map(({ resources }) => parse(resources?.requests?.[name])));
    return Math.max(sum, largestInit) + parse(spec.overhead?.[name]);
  };
  return {
    ...base,
    resource: "pods",
    sinceMs: podSinceMs(pod, base.createdMs),
    health: podHealth(pod),
    status: podStatus(pod),
    node: spec.nodeName ?? "",
    ready: containersReady(pod),
    containers: spec.containers.length,
    restarts: restartsOf(pod),
    cpuMilli: requests("cpu", milli),
    memoryBytes: requests("memory", bytes),
  };
}

/** Start of the current transition. A deletionTimestamp is the end of the grace period, which itself is no problem. */
function podSinceMs({ metadata, status }: Pod, createdMs: number): number {
  if (metadata?.deletionTimestamp) return timeOf(metadata.deletionTimestamp);
  const ready = status?.conditions?.find(({ type }) => type === "Ready");
  return timeOf(ready?.lastTransitionTime) || createdMs;
}

function namespaceRow({ metadata, status }: Namespace, base: Base): Row {
  const isEnding = status?.phase === "Terminating";
  const sinceMs = timeOf(metadata?.deletionTimestamp);
  return { ...base, health: isEnding ? "moving" : "good", status: status?.phase ?? "", sinceMs };
}

interface Counts {
  readonly desired: number;
  readonly ready: number;
  readonly updated: number;
  /** Pods of earlier revisions; usually ready, which the other numbers do not show. */
  readonly old?: number;
}

/**
 * `moving` until the desired number of pods is ready and of the newest revision; `bad` when a condition reports that the rollout
 * is stuck.
 */
function workloadRow(
  base: Base,
  { desired, ready, updated, old = 0 }: Counts,
  template: { readonly spec?: { readonly containers: readonly { readonly image?: string }[] } } | undefined,
  problem = "",
): WorkloadRow {
  const isDone = ready >= desired && updated >= desired;
  const health: Health = problem !== "" ? "bad" : !isDone ? "moving" : desired === 0 ? "idle" : "good";
  const status =
    problem || (isDone ? (desired === 0 ? "Scaled to 0" : "Available") : updated < desired ? "Updating" : "Starting");
  const updatedReady = Math.min(updated, Math.max(0, ready - old));
  const images = template?.spec?.containers.map(({ image }) => image ?? "").join(", ") ?? "";
  return {
    ...base,
    resource: base.resource as WorkloadRow["resource"], // cast: only the kinds of workloads make such rows
    health,
    status,
    desired,
    ready,
    updatedReady,
    updated,
    images,
  };
}

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
}
const reasonOf = (conditions: readonly Condition[] | undefined, type: string, value: string): string =>
  conditions?.find((one) => one.type === type && one.status === value)?.reason ?? "";

function deploymentRow({ metadata, spec, status }: Deployment, base: Base): WorkloadRow {
  const desired = spec?.replicas ?? 1;
  const isSeen = (status?.observedGeneration ?? 0) >= (metadata?.generation ?? 0);
  const ready = status?.availableReplicas ?? 0;
  const old = Math.max(0, (status?.replicas ?? 0) - (status?.updatedReplicas ?? 0));
  // While old pods are left the rollout is not complete.
  const most = isSeen && old === 0 ? desired : Math.max(0, desired - 1);
  const updated = Math.min(status?.updatedReplicas ?? 0, most);
  const problem = reasonOf(status?.conditions, "ReplicaFailure", "True") || reasonOf(status?.conditions, "Progressing", "False");
  const row = workloadRow(base, { desired, ready, updated, old }, spec?.template, problem === "DeploymentPaused" ? "" : problem);
  return spec?.paused ? { ...row, health: "idle", status: "Paused" } : row;
}

function replicaSetRow({ spec, status }: ReplicaSet, base: Base): WorkloadRow {
  const desired = spec?.replicas ?? 1;
  const counts = { desired, ready: status?.readyReplicas ?? 0, updated: desired };
  return workloadRow(base, counts, spec?.template, reasonOf(status?.conditions, "ReplicaFailure", "True"));
}

function statefulSetRow({ spec, status }: StatefulSet, base: Base): WorkloadRow {
  const desired = spec?.replicas ?? 1;
  const isRolling = status?.updateRevision !== undefined && status.updateRevision !== status.currentRevision;
  const updated = isRolling ? (status?.updatedReplicas ?? 0) : desired;
  const old = isRolling ? Math.max(0, (status?.replicas ?? 0) - updated) : 0;
  return workloadRow(base, { desired, ready: status?.readyReplicas ?? 0, updated, old }, spec?.template);
}

function daemonSetRow({ spec, status }: DaemonSet, base: Base): WorkloadRow {
  const desired = status?.desiredNumberScheduled ?? 0;
  const counts = { desired, ready: status?.numberReady ?? 0, updated: status?.updatedNumberScheduled ?? 0 };
  return workloadRow(base, counts, spec?.template);
}

function jobRow({ spec, status }: Job, base: Base): WorkloadRow {
  const desired = spec?.completions ?? spec?.parallelism ?? 1;
  const done = status?.succeeded ?? 0;
  const row = workloadRow(base, { desired, ready: done, updated: desired }, spec?.template);
  const failed = reasonOf(status?.conditions, "Failed", "True");
  if (failed !== "") return { ...row, health: "bad", status: failed };
  if (status?.conditions?.some(({ type, status: value }) => type === "Complete" && value === "True")) {
    return { ...row, health: "idle", status: "Complete" };
  }
  return { ...row, health: spec?.suspend ? "idle" : "moving", status: spec?.suspend ? "Suspended" : "Running" };
}

function cronJobRow({ spec, status }: CronJob, base: Base): WorkloadRow {
  const active = status?.active?.length ?? 0;
  const row = workloadRow(base, { desired: 0, ready: active, updated: 0 }, spec?.jobTemplate.spec?.template);
  return { ...row, health: active > 0 ? "moving" : "idle", status: spec?.suspend ? "Suspended" : (spec?.schedule ?? "") };
}

function claimRow({ status }: PersistentVolumeClaim, base: Base): Row {
  const phase = status?.phase ?? "Pending";
  const health: Health = phase === "Bound" ? "good" : phase === "Lost" ? "bad" : "moving";
  return { ...base, health, status: phase, sinceMs: base.createdMs };
}

function autoscalerRow({ status }: HorizontalPodAutoscaler, base: Base): Row {
  const { currentReplicas = 0, desiredReplicas = 0 } = status ?? {};
  const isThere = currentReplicas === desiredReplicas;
  return { ...base, health: isThere ? "good" : "moving", status: `${currentReplicas} of ${desiredReplicas} replicas` };
}

/** Maximum number of shown characters of a message. */
const mostText = 1_000;

function eventRow(event: Event, base: Base): EventRow {
  const { involvedObject: about, type, reason, message, series } = event;
  const isWarning = type !== undefined && type !== "Normal";
  const lastMs = timeOf(series?.lastObservedTime ?? event.lastTimestamp ?? event.eventTime ?? event.firstTimestamp);
  return {
    ...base,
    resource: "events",
    health: isWarning ? "bad" : "good",
    status: type ?? "Normal",
    isWarning,
    reason: reason ?? "",
    message: (message ?? "").slice(0, mostText),
    count: series?.count ?? event.count ?? 1,
    lastMs: lastMs || base.createdMs,
    source: event.reportingComponent || event.source?.component || "",
    about: about.uid ?? "",
    aboutKind: about.kind ?? "",
    aboutName: about.name ?? "",
    aboutNamespace: about.namespace ?? "",
  };
}

const timeOf = (text: string | null | undefined): number => (text ? Date.parse(text) || 0 : 0);

const milli = (text: string | undefined): number => Math.round(amount(text) * 1000);
const bytes = (text: string | undefined): number => Math.round(amount(text));

/** Cache of parsed quantities: a cluster uses few different ones. */
const amounts = new Map<string, number>();
const mostAmounts = 10_000;

export function amount(text: string | undefined): number {
  if (text === undefined) return 0;
  const known = amounts.get(text);
  if (known !== undefined) return known;
  const parsed = Quantity.tryParse(text);
  const value = parsed === undefined ? 0 : Number(parsed.nanos) / 1e9;
  if (amounts.size >= mostAmounts) amounts.clear();
  amounts.set(text, value);
  return value;
}
