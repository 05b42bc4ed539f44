import { parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { age, tableOf } from "../../cells.ts";

/** kubectl get pods. Source: pkg/printers/internalversion/printers.go printPod */
export const podTable = tableOf<Pod>("pods", (pod, ages) => {
  const { ready, total, restarts, lastRestartMs, reason } = summarize(pod);
  return [
    pod.metadata.name ?? "",
    `${ready}/${total}`,
    reason,
    lastRestartMs === undefined ? String(restarts) : `${restarts} (${ages.since(lastRestartMs)} ago)`,
    age(pod, ages),
    pod.status?.podIPs?.[0]?.ip ?? (pod.status?.podIP || "<none>"),
    pod.spec.nodeName || "<none>",
    pod.status?.nominatedNodeName || "<none>",
    readinessGates(pod),
  ];
});

interface Summary {
  ready: number;
  total: number;
  restarts: number;
  lastRestartMs: number | undefined;
  reason: string;
}

/** Values of the columns Ready, Status and Restarts. */
function summarize(pod: Pod): Summary {
  const status = pod.status ?? {};
  const summary: Summary = {
    ready: 0,
    total: pod.spec.containers?.length ?? 0,
    restarts: 0,
    lastRestartMs: undefined,
    reason: status.reason || status.phase || "",
  };
  const initializing = summarizeInit(pod, summary);
  if (!initializing) summarizeContainers(pod, summary);
  if (pod.metadata.deletionTimestamp) {
    summary.reason = status.reason === "NodeLost" ? "Unknown" : "Terminating";
  }
  return summary;
}

/** @returns true while init containers are running */
function summarizeInit(pod: Pod, summary: Summary): boolean {
  const statuses = pod.status?.initContainerStatuses ?? [];
  for (const [i, container] of statuses.entries()) {
    summary.restarts += container.restartCount ?? 0;
    seeRestart(summary, container.lastState?.terminated?.finishedAt);
    const { terminated, waiting } = container.state ?? {};
    if (terminated && (terminated.exitCode ?? 0) === 0) continue;
    if (terminated) {
      if (terminated.reason) summary.reason = `Init:${terminated.reason}`;
      else if (terminated.signal) summary.reason = `Init:Signal:${terminated.signal}`;
      else summary.reason = `Init:ExitCode:${terminated.exitCode ?? 0}`;
    } else if (waiting?.reason && waiting.reason !== "PodInitializing") {
      summary.reason = `Init:${waiting.reason}`;
    } else {
      summary.reason = `Init:${i}/${pod.spec.initContainers?.length ?? 0}`;
    }
    return true;
  }
  return false;
}

function summarizeContainers(pod: Pod, summary: Summary): void {
  summary.restarts = 0; // as in 1.23, the time of the last one may still be that of an init container
  let running = false;
  for (const container of (pod.status?.containerStatuses ?? []).toReversed()) {
    summary.restarts += container.restartCount ?? 0;
    seeRestart(summary, container.lastState?.terminated?.finishedAt);
    const { terminated, waiting, running: runs } = container.state ?? {};
    if (waiting?.reason) summary.reason = waiting.reason;
    else if (terminated?.reason) summary.reason = terminated.reason;
    else if (terminated?.signal) summary.reason = `Signal:${terminated.signal}`;
    else if (terminated) summary.reason = `ExitCode:${terminated.exitCode ?? 0}`;
    else if (container.ready && runs) {
      running = true;
      summary.ready++;
    }
  }
  if (summary.reason === "Completed" && running) {
    const ready = (pod.status?.conditions ?? []).some((c) => c.type === "Ready" && c.status === "True");
    summary.reason = ready ? "Running" : "NotReady";
  }
}

function seeRestart(summary: Summary, finishedAt: string | null | undefined): void {
  const ms = finishedAt ? parseTime(finishedAt) : undefined;
  if (ms !== undefined && (summary.lastRestartMs === undefined || ms > summary.lastRestartMs)) summary.lastRestartMs = ms;
}

function readinessGates(pod: Pod): string {
  const gates = pod.spec.readinessGates ?? [];
  if (gates.length === 0) return "<none>";
  const met = gates.filter((gate) =>
    (pod.status?.conditions ?? []).some((condition) => condition.type === gate.conditionType && condition.status === "True"),
  );
  return `${met.length}/${gates.length}`;
}
