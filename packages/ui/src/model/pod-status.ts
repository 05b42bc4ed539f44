/** The status of a pod as in kubectl's STATUS column, and the health that it means. */
import type { ContainerState, ContainerStatus, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Health } from "./row.ts";

/** The text of kubectl's column STATUS. Source: pkg/printers/internalversion/printers.go printPod */
export function podStatus({ metadata, spec, status }: Pod): string {
  const inits = status?.initContainerStatuses ?? [];
  const starting = inits.findIndex(({ state }) => state?.terminated === undefined || state.terminated.exitCode !== 0);
  let word = status?.reason || status?.phase || "Pending";
  if (starting >= 0) word = initStatus(inits[starting]?.state, starting, spec.initContainers?.length ?? inits.length);
  else {
    let isRunning = false;
    for (const { state, ready } of (status?.containerStatuses ?? []).toReversed()) {
      const reason = stateReason(state);
      if (reason !== undefined) word = reason;
      else if (ready && state?.running !== undefined) isRunning = true;
    }
    if (word === "Completed" && isRunning) word = isReady(status?.conditions) ? "Running" : "NotReady";
  }
  if (metadata?.deletionTimestamp) return status?.reason === "NodeLost" ? "Unknown" : "Terminating";
  if (word === "Pending" && isUnschedulable(status?.conditions)) return "Unschedulable";
  return word;
}

function initStatus(state: ContainerState | undefined, index: number, count: number): string {
  const { terminated, waiting } = state ?? {};
  if (terminated !== undefined) return `Init:${stateReason(state) ?? "Error"}`;
  if (waiting?.reason && waiting.reason !== "PodInitializing") return `Init:${waiting.reason}`;
  return `Init:${index}/${count}`;
}

function stateReason(state: ContainerState | undefined): string | undefined {
  const { waiting, terminated } = state ?? {};
  if (waiting?.reason) return waiting.reason;
  if (terminated === undefined) return undefined;
  return terminated.reason || (terminated.signal ? `Signal:${terminated.signal}` : `ExitCode:${terminated.exitCode}`);
}

type Conditions = readonly { readonly type: string; readonly status: string; readonly reason?: string }[] | undefined;

const isReady = (conditions: Conditions): boolean =>
  conditions?.some(({ type, status }) => type === "Ready" && status === "True") === true;

const isUnschedulable = (conditions: Conditions): boolean =>
  conditions?.some(({ type, status, reason }) => type === "PodScheduled" && status === "False" && reason === "Unschedulable") ===
  true;

/** Waiting reasons that are not problems. */
const usual = new Set(["ContainerCreating", "PodInitializing"]);

export function podHealth(pod: Pod): Health {
  const { metadata, status } = pod;
  if (metadata?.deletionTimestamp) return "moving";
  if (status?.phase === "Succeeded") return "idle";
  if (status?.phase === "Failed" || status?.phase === "Unknown" || isUnschedulable(status?.conditions)) return "bad";
  const all = [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])];
  if (all.some(isStuck)) return "bad";
  if (status?.phase !== "Running") return "moving";
  return containersReady(pod) === pod.spec.containers.length ? "good" : "moving";
}

function isStuck({ state, restartCount }: ContainerStatus): boolean {
  const { waiting, terminated } = state ?? {};
  if (waiting?.reason && !usual.has(waiting.reason)) return true;
  return terminated !== undefined && terminated.exitCode !== 0 && restartCount > 0;
}

export const containersReady = ({ status }: Pod): number => (status?.containerStatuses ?? []).filter(({ ready }) => ready).length;

export const restartsOf = ({ status }: Pod): number =>
  (status?.containerStatuses ?? []).reduce((sum, { restartCount }) => sum + restartCount, 0);
