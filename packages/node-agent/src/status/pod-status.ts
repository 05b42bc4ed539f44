import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import type { ContainerStatus, PodCondition, PodStatus } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { qosClass } from "@coxswain/apimachinery/quota/qos";
import { type AnyContainer, type ContainerKind, containersOf, type NodePod } from "../pod/pod.ts";
import type { Rejection } from "../pod/pod-verdict.ts";
import type { ProbeResults } from "../probes/results.ts";
import { type ContainerRecord, containersNamed, newestContainer, type PodRecord, podIps } from "../runtime/pod-record.ts";
import { shouldRestart } from "../runtime/should-restart.ts";

/** Inputs of the status of a Pod. */
interface StatusInput {
  pod: NodePod;
  record: PodRecord;
  /** The last status computed for the Pod. */
  previous: PodStatus | undefined;
  hostIps: readonly string[];
  probes: ProbeResults;
  /** Why the last attempt to start a container failed. */
  startFailure: (container: string) => { reason: string; message: string } | undefined;
  runtimeName: string;
  now: number;
}

/** Pure: the status of a Pod. Source: pkg/kubelet/kubelet_pods.go generateAPIPodStatus */
export function podStatus(input: StatusInput): PodStatus {
  const { pod, record, previous } = input;
  const before = previous ?? pod.status ?? {};
  const containerStatuses = statusesOf(input, pod.spec.containers, "regular", before.containerStatuses);
  const initContainerStatuses = statusesOf(input, pod.spec.initContainers ?? [], "init", before.initContainerStatuses);
  const ephemeralContainerStatuses = statusesOf(
    input,
    pod.spec.ephemeralContainers ?? [],
    "ephemeral",
    before.ephemeralContainerStatuses,
  );

  let phase = phaseOf(pod, containerStatuses, initContainerStatuses);
  // A terminal phase never changes, even when the containers were removed.
  if (isEnd(pod.status?.phase)) phase = pod.status.phase;
  else if (!isEnd(phase) && isEnd(before.phase)) phase = before.phase;
  const status: PodStatus = { phase };
  if (phase === before.phase) {
    const reason = before.reason || pod.status?.reason;
    const message = before.message || pod.status?.message;
    if (reason) status.reason = reason;
    if (message) status.message = message;
  }
  setReadiness(input, containerStatuses, initContainerStatuses);
  status.conditions = conditionsOf(input, phase, containerStatuses, initContainerStatuses, before.conditions ?? []);
  if (input.hostIps[0] !== undefined) status.hostIP = input.hostIps[0];
  const ips = pod.spec.hostNetwork ? input.hostIps : podIps(record);
  const shown = ips.length > 0 ? ips : keptIps(phase, before);
  if (shown[0] !== undefined) {
    status.podIP = shown[0];
    status.podIPs = shown.map((ip) => ({ ip }));
  }
  status.startTime = before.startTime ?? pod.status?.startTime ?? formatTime(input.now);
  if (initContainerStatuses.length > 0) status.initContainerStatuses = initContainerStatuses;
  if (containerStatuses.length > 0) status.containerStatuses = containerStatuses;
  status.qosClass = pod.status?.qosClass ?? qosClass(pod);
  if (ephemeralContainerStatuses.length > 0) status.ephemeralContainerStatuses = ephemeralContainerStatuses;
  const nominated = pod.status?.nominatedNodeName;
  if (nominated !== undefined) status.nominatedNodeName = nominated;
  return status;
}

/** Pure: the status of a Pod that cannot run on this machine for now. Source: pkg/kubelet/kubelet.go syncPod */
export function blockedStatus(status: PodStatus, reason: string, message: string): PodStatus {
  const block = (statuses: readonly ContainerStatus[] | undefined): ContainerStatus[] | undefined =>
    statuses?.map((one) =>
      one.state?.waiting === undefined ? one : { ...one, state: { waiting: { ...one.state.waiting, reason: "Blocked" } } },
    );
  const next: PodStatus = { ...status, phase: "Pending", reason, message };
  const [init, regular] = [block(status.initContainerStatuses), block(status.containerStatuses)];
  if (init !== undefined) next.initContainerStatuses = init;
  if (regular !== undefined) next.containerStatuses = regular;
  return next;
}

function isEnd(phase: string | undefined): phase is "Failed" | "Succeeded" {
  return phase === "Failed" || phase === "Succeeded";
}

/** A stopped sandbox has no IP; a terminated Pod keeps its last IPs. */
function keptIps(phase: string, before: PodStatus): readonly string[] {
  if (phase === "Pending") return [];
  return (before.podIPs ?? []).map((entry) => entry.ip ?? "").filter((ip) => ip !== "");
}

/** Statuses by container, since there may be thousands in a pod. */
function byName(statuses: readonly ContainerStatus[]): ReadonlyMap<string, ContainerStatus> {
  return new Map(statuses.map((status) => [status.name, status]));
}

function statusesOf(
  input: StatusInput,
  containers: readonly AnyContainer[],
  kind: ContainerKind,
  before: readonly ContainerStatus[] | undefined,
): ContainerStatus[] {
  const { pod, record } = input;
  const waitsFor = (pod.spec.initContainers ?? []).length > 0 ? "PodInitializing" : "ContainerCreating";
  const known = byName(before ?? []);
  const statuses = containers.map((container): ContainerStatus => {
    const old = known.get(container.name);
    const [newest, second] = containersNamed(record, container.name);
    let status: ContainerStatus;
    if (newest !== undefined) {
      status = fromRecord(newest, old, input.runtimeName);
      if (second !== undefined) status.lastState = fromRecord(second, old, input.runtimeName).state ?? {};
      else if (old?.lastState !== undefined && (old.restartCount ?? 0) === newest.restartCount) status.lastState = old.lastState;
    } else {
      status = withoutRecord(container, old, pod, waitsFor);
    }
    return withStartFailure(status, container, kind, input);
  });
  return kind === "init" ? statuses : statuses.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

function withoutRecord(container: AnyContainer, old: ContainerStatus | undefined, pod: NodePod, reason: string): ContainerStatus {
  const status: ContainerStatus = {
    name: container.name,
    state: { waiting: { reason } },
    lastState: {},
    ready: false,
    restartCount: 0,
    image: container.image ?? "",
    imageID: "",
  };
  if (old === undefined) return status;
  if (old.state?.terminated !== undefined) return { ...old };
  status.restartCount = old.restartCount ?? 0;
  status.lastState = old.lastState ?? {};
  if (old.state?.running === undefined || status.lastState?.terminated !== undefined) return status;
  // The container was running, and the runtime has no record of how it ended.
  status.lastState = {
    terminated: {
      reason: "ContainerStatusUnknown",
      message: "The container could not be located when the pod was deleted.  The container used to be Running",
      exitCode: 137,
      startedAt: null,
      finishedAt: null,
    },
  };
  if (pod.metadata.deletionTimestamp == null) status.restartCount += 1;
  return status;
}

function fromRecord(record: ContainerRecord, old: ContainerStatus | undefined, runtimeName: string): ContainerStatus {
  const containerID = `${runtimeName}://${record.id}`;
  const status: ContainerStatus = {
    name: record.name,
    state: {},
    lastState: {},
    ready: false,
    restartCount: record.restartCount,
    image: record.image,
    imageID: record.imageRef,
    containerID,
  };
  switch (record.state) {
    case "running":
      status.state = { running: { startedAt: formatTime(record.startedAt) } };
      break;
    case "exited":
      status.state = {
        terminated: {
          exitCode: record.exitCode,
          ...(record.reason === "" ? {} : { reason: record.reason }),
          ...(record.message === "" ? {} : { message: record.message }),
          startedAt: record.startedAt > 0 ? formatTime(record.startedAt) : null,
          finishedAt: record.finishedAt > 0 ? formatTime(record.finishedAt) : null,
          containerID,
        },
      };
      break;
    case "unknown":
      if (old?.state?.running !== undefined) {
        const message = "The container could not be located when the pod was terminated";
        status.state = { terminated: { reason: "ContainerStatusUnknown", message, exitCode: 137 } };
        status.restartCount = (old.restartCount ?? 0) + 1;
        break;
      }
      status.state = { waiting: {} };
      break;
    default:
      status.state = { waiting: {} };
  }
  return status;
}

/** Shows why a container is waiting for its next start, and the result of the previous one as last state. */
function withStartFailure(
  status: ContainerStatus,
  container: AnyContainer,
  kind: ContainerKind,
  input: StatusInput,
): ContainerStatus {
  const newest = newestContainer(input.record, container.name);
  if (kind === "init" && newest?.state === "exited" && newest.exitCode === 0) return status;
  if (kind === "ephemeral" ? newest !== undefined : !shouldRestart(input.pod, input.record, container.name)) return status;
  const failure = input.startFailure(container.name);
  if (failure === undefined) return status;
  if (status.state?.terminated !== undefined) status.lastState = status.state;
  status.state = { waiting: { reason: failure.reason, ...(failure.message === "" ? {} : { message: failure.message }) } };
  return status;
}

function setReadiness(
  { pod, probes }: StatusInput,
  statuses: readonly ContainerStatus[],
  inits: readonly ContainerStatus[],
): void {
  for (const status of statuses) {
    const running = status.state?.running !== undefined;
    const id = (status.containerID ?? "").replace(/^[^:]*:\/\//, "");
    let started = false;
    if (running) {
      const result = probes.startup(id);
      started = result !== undefined ? result === "success" : !probes.isProbed("startup", pod.metadata.uid, status.name);
    }
    status.started = started;
    let ready = false;
    if (running && started) {
      const result = probes.readiness(id);
      ready = result !== undefined ? result === "success" : !probes.isProbed("readiness", pod.metadata.uid, status.name);
    }
    status.ready = ready;
  }
  for (const status of inits) status.ready = status.state?.terminated?.exitCode === 0;
}

/** Pure: the phase of a Pod. Source: kubelet_pods.go getPhase */
function phaseOf(pod: NodePod, statuses: readonly ContainerStatus[], inits: readonly ContainerStatus[]): string {
  let pendingInit = 0;
  let failedInit = 0;
  const initOf = byName(inits);
  for (const container of pod.spec.initContainers ?? []) {
    const status = initOf.get(container.name);
    const terminated = status?.state?.terminated;
    if (terminated !== undefined) {
      if (terminated.exitCode !== 0) failedInit++;
    } else if (status?.state?.waiting !== undefined && status.lastState?.terminated !== undefined) {
      if (status.lastState.terminated.exitCode !== 0) failedInit++;
    } else pendingInit++;
  }
  const count = { unknown: 0, running: 0, waiting: 0, stopped: 0, succeeded: 0 };
  const statusOf = byName(statuses);
  for (const container of pod.spec.containers) {
    const status = statusOf.get(container.name);
    if (status?.state?.running !== undefined) count.running++;
    else if (status?.state?.terminated !== undefined) {
      count.stopped++;
      if (status.state.terminated.exitCode === 0) count.succeeded++;
    } else if (status?.state?.waiting !== undefined) {
      if (status.lastState?.terminated !== undefined) count.stopped++;
      else count.waiting++;
    } else count.unknown++;
  }
  if (failedInit > 0 && pod.spec.restartPolicy === "Never") return "Failed";
  if (pendingInit > 0 || count.waiting > 0) return "Pending";
  if (count.running > 0 && count.unknown === 0) return "Running";
  if (count.running === 0 && count.stopped > 0 && count.unknown === 0) {
    if ((pod.spec.restartPolicy ?? "Always") === "Always") return "Running";
    if (count.stopped === count.succeeded) return "Succeeded";
    return pod.spec.restartPolicy === "Never" ? "Failed" : "Running";
  }
  return "Pending";
}

type Verdict = { status: "True" | "False"; reason?: string; message?: string };

function conditionsOf(
  input: StatusInput,
  phase: string,
  statuses: readonly ContainerStatus[],
  inits: readonly ContainerStatus[],
  before: readonly PodCondition[],
): PodCondition[] {
  const { pod, now } = input;
  const containersReady = containersReadyVerdict(phase, statuses, pod.spec.containers);
  const own: [string, Verdict][] = [
    ["Initialized", initializedVerdict(phase, inits, pod.spec.initContainers ?? [])],
    ["Ready", readyVerdict(pod, containersReady, before)],
    ["ContainersReady", containersReady],
    ["PodScheduled", { status: "True" }],
  ];
  const conditions = own.map(([type, verdict]): PodCondition => {
    const old = before.find((condition) => condition.type === type);
    const lastTransitionTime =
      old?.status === verdict.status && old.lastTransitionTime ? old.lastTransitionTime : formatTime(now);
    return { type, ...verdict, lastProbeTime: null, lastTransitionTime };
  });
  // Conditions set by others (readiness gates) are kept.
  const foreign = (pod.status?.conditions ?? []).filter(({ type }) => !ownConditions.includes(type));
  return [...conditions, ...foreign];
}

function containersReadyVerdict(
  phase: string,
  statuses: readonly ContainerStatus[],
  order: readonly { name: string }[],
): Verdict {
  if (phase === "Succeeded") return { status: "False", reason: "PodCompleted" };
  return verdictOf("ContainersNotReady", "unready", statuses, order);
}

function initializedVerdict(phase: string, inits: readonly ContainerStatus[], order: readonly { name: string }[]): Verdict {
  if (phase === "Succeeded") return { status: "True", reason: "PodCompleted" };
  return verdictOf("ContainersNotInitialized", "incomplete", inits, order);
}

/** Names the containers that are not ready, in the order of the specification. */
function verdictOf(
  reason: string,
  what: string,
  statuses: readonly ContainerStatus[],
  order: readonly { name: string }[],
): Verdict {
  const statusOf = byName(statuses);
  const names = order.map(({ name }) => name).filter((name) => statusOf.get(name)?.ready !== true);
  if (names.length === 0) return { status: "True" };
  return { status: "False", reason, message: `containers with ${what} status: [${names.join(" ")}]` };
}

function readyVerdict(pod: NodePod, containersReady: Verdict, before: readonly PodCondition[]): Verdict {
  if (containersReady.status !== "True") return containersReady;
  const messages: string[] = [];
  const { readinessGates = [] } = pod.spec;
  const known = new Map<string, PodCondition>();
  if (readinessGates.length > 0)
    for (const condition of [...(pod.status?.conditions ?? []), ...before]) known.getOrInsert(condition.type, condition);
  for (const { conditionType } of readinessGates) {
    const condition = known.get(conditionType);
    if (condition === undefined) {
      messages.push(`corresponding condition of pod readiness gate ${JSON.stringify(conditionType)} does not exist.`);
    } else if (condition.status !== "True") {
      messages.push(`the status of pod readiness gate ${JSON.stringify(conditionType)} is not "True", but ${condition.status}`);
    }
  }
  return messages.length === 0
    ? { status: "True" }
    : { status: "False", reason: "ReadinessGatesNotReady", message: messages.join(", ") };
}

/** Pure: the status of a Pod that the node rejected. Source: pkg/kubelet/kubelet.go rejectPod */
export function rejectedStatus(pod: NodePod, { reason, message }: Rejection, now: number): PodStatus {
  return { phase: "Failed", reason, message: `Pod ${message}`, startTime: pod.status?.startTime ?? formatTime(now) };
}

/** Conditions owned by the kubelet. Source: pkg/kubelet/types/pod_status.go */
export const ownConditions: readonly string[] = ["Initialized", "Ready", "ContainersReady", "PodScheduled"];

/** Pure: marks every container that is neither terminated nor waiting as terminated, once nothing of the Pod runs. */
export function terminatedStatus(status: PodStatus, pod: NodePod): PodStatus {
  const finish = (list: readonly ContainerStatus[] | undefined): ContainerStatus[] | undefined =>
    list?.map((container) => {
      const { state } = container;
      if (state?.terminated !== undefined || state?.waiting !== undefined) return { ...container, ready: false, started: false };
      const message = "The container could not be located when the pod was terminated";
      const terminated = { reason: "ContainerStatusUnknown", message, exitCode: 137, startedAt: null, finishedAt: null };
      return { ...container, ready: false, started: false, state: { terminated } };
    });
  const next = { ...status };
  const containers = finish(status.containerStatuses);
  if (containers !== undefined) next.containerStatuses = containers;
  const known = new Set([...containersOf(pod)].map(({ container }) => container.name));
  if (status.initContainerStatuses !== undefined) {
    next.initContainerStatuses = status.initContainerStatuses.filter((container) => known.has(container.name));
  }
  return next;
}
