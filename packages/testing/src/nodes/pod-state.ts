import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import type { ContainerStatus, Pod, PodStatus } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

/** State of a Pod that a fake node runs. */
export interface PodState {
  readonly phase: "starting" | "waiting" | "running" | "ready" | "backing-off" | "ended";
  readonly podIP: string;
  readonly restarts: number;
  /** ms since the epoch. */
  readonly startedMs: number;
  /** Why the containers cannot be started, or not yet. */
  readonly waits: { readonly reason: string; readonly message: string } | undefined;
  /** The last termination of the containers. */
  readonly last:
    | { readonly exitCode: number; readonly reason: string | undefined; readonly startedMs: number; readonly endedMs: number }
    | undefined;
  /** True when `activeDeadlineSeconds` ended it. */
  readonly isOverdue: boolean;
}

/** The first crash-loop back-off; doubles with each exit up to `mostBackOffMs`, as in the kubelet. */
const firstBackOffMs = 10_000;
const mostBackOffMs = 300_000;

/** Back-off before the next start of a container that has been restarted `restarts` times. */
export function backOffMs(restarts: number): number {
  return Math.min(mostBackOffMs, firstBackOffMs * 2 ** restarts);
}

/** State of the Pod after its containers have exited. */
export function afterEnd(restartPolicy: string, exitCode: number): "ended" | "backing-off" {
  if (restartPolicy === "Always" || (restartPolicy === "OnFailure" && exitCode !== 0)) return "backing-off";
  return "ended";
}

/** The status that the node writes. */
export function statusOf(pod: Pod, state: PodState, hostIP: string, nowMs: number): Partial<PodStatus> {
  const { phase, last, podIP } = state;
  const isReady = phase === "ready";
  const failed = state.isOverdue || (last?.exitCode ?? 0) !== 0;
  const podPhase = phase === "ended" ? (failed ? "Failed" : "Succeeded") : isUp(state) ? "Running" : "Pending";
  const at = formatTime(nowMs);
  const condition = (type: string, status: boolean, reason?: string) => ({
    type,
    status: status ? "True" : "False",
    lastProbeTime: null,
    lastTransitionTime: unchangedSince(pod, type, status) ?? at,
    ...(status || reason === undefined ? {} : { reason, message: messageOf(pod, reason) }),
  });
  const notReady = phase === "ended" ? "PodCompleted" : "ContainersNotReady";
  const gates = (pod.spec.readinessGates ?? []).every(({ conditionType }) =>
    pod.status?.conditions?.some(({ type, status }) => type === conditionType && status === "True"),
  );
  return {
    phase: podPhase,
    ...(state.isOverdue && { reason: "DeadlineExceeded", message: overdueMessage }),
    conditions: [
      condition("Initialized", true),
      condition("Ready", isReady && gates, isReady ? "ReadinessGatesNotReady" : notReady),
      condition("ContainersReady", isReady, notReady),
    ] as PodStatus["conditions"] & object,
    hostIP,
    podIP,
    podIPs: [{ ip: podIP }],
    startTime: pod.status?.startTime ?? at,
    containerStatuses: pod.spec.containers.map(({ name, image = "" }) => containerStatus(pod, name, image, state)),
    ...(pod.spec.initContainers?.length && {
      initContainerStatuses: pod.spec.initContainers.map(({ name, image = "" }) => ({
        ...identity(pod, name, image),
        ready: true,
        restartCount: 0,
        lastState: {},
        state: { terminated: { exitCode: 0, reason: "Completed", startedAt: at, finishedAt: at } },
      })),
    }),
  };
}

/** Source: pkg/kubelet/active_deadline.go */
const overdueMessage = "Pod was active on the node longer than the specified deadline";

const isUp = ({ phase, last }: PodState): boolean => phase === "running" || phase === "ready" || last !== undefined;

function unchangedSince(pod: Pod, type: string, status: boolean): string | undefined {
  const before = pod.status?.conditions?.find((one) => one.type === type);
  return before?.status === (status ? "True" : "False") ? (before.lastTransitionTime ?? undefined) : undefined;
}

function messageOf(pod: Pod, reason: string): string {
  if (reason === "ReadinessGatesNotReady") return "the status of a readiness gate is not True";
  return `containers with unready status: [${pod.spec.containers.map(({ name }) => name).join(" ")}]`;
}

function containerStatus(pod: Pod, name: string, image: string, state: PodState): ContainerStatus {
  const { phase, restarts, waits, last, startedMs } = state;
  const ended = last && {
    terminated: {
      exitCode: last.exitCode,
      reason: last.reason ?? (last.exitCode === 0 ? "Completed" : "Error"),
      startedAt: formatTime(last.startedMs),
      finishedAt: formatTime(last.endedMs),
      containerID: containerId(pod, name, restarts),
    },
  };
  const waiting = { waiting: waits ?? { reason: "ContainerCreating" } };
  const current =
    phase === "ended"
      ? (ended ?? waiting)
      : phase === "running" || phase === "ready"
        ? { running: { startedAt: formatTime(startedMs) } }
        : waiting;
  return {
    ...identity(pod, name, image),
    ready: phase === "ready",
    started: phase === "running" || phase === "ready",
    restartCount: restarts,
    state: current,
    lastState: phase === "ended" ? {} : (ended ?? {}),
  };
}

const identity = (pod: Pod, name: string, image: string) => ({
  name,
  image,
  imageID: image,
  containerID: containerId(pod, name, 0),
});

const containerId = (pod: Pod, name: string, restarts: number): string => `fake://${pod.metadata.uid}/${name}/${restarts}`;
