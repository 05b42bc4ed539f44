import type { ProbeResults } from "../probes/results.ts";
import { containerHash } from "../runtime/labels.ts";
import { type ContainerRecord, newestContainer, type PodRecord } from "../runtime/pod-record.ts";
import type { AnyContainer, NodePod } from "./pod.ts";

export interface ContainerToKill {
  record: ContainerRecord;
  container: AnyContainer;
  message: string;
  reason: "" | "LivenessProbe" | "StartupProbe" | "Unknown";
}

/** What has to be done to a Pod, in this order: kill, make the sandbox, start. */
export interface PodActions {
  /** Stop everything, with the sandbox. */
  killPod: boolean;
  createSandbox: boolean;
  /** The newest sandbox; undefined when there is none to speak of. */
  sandboxId: string | undefined;
  attempt: number;
  nextInitContainer: AnyContainer | undefined;
  ephemeralToStart: readonly AnyContainer[];
  toStart: readonly AnyContainer[];
  toKill: readonly ContainerToKill[];
}

/**
 * Pure: from the Pod that is wanted and what the runtime has of it to what has to be done.
 * Source: pkg/kubelet/kuberuntime/kuberuntime_manager.go computePodActions
 */
export function planPod(pod: NodePod, record: PodRecord, probes: ProbeResults, hashOf = containerHash): PodActions {
  const sandbox = sandboxChange(pod, record);
  const plan = {
    killPod: sandbox.changed,
    createSandbox: sandbox.changed,
    sandboxId: sandbox.id,
    attempt: sandbox.attempt,
    nextInitContainer: undefined as AnyContainer | undefined,
    ephemeralToStart: [] as AnyContainer[],
    toStart: [] as AnyContainer[],
    toKill: [] as ContainerToKill[],
  };
  const restarts = pod.spec.restartPolicy !== "Never";

  if (sandbox.changed) {
    if (!restarts && sandbox.attempt !== 0 && record.containers.length > 0) return { ...plan, createSandbox: false };
    const toStart = pod.spec.containers.filter(
      (container) => !(pod.spec.restartPolicy === "OnFailure" && hasSucceeded(record, container.name)),
    );
    if (toStart.length === 0 && initProgress(pod, record).done) return { ...plan, createSandbox: false };
    const [firstInit] = pod.spec.initContainers ?? [];
    if (firstInit !== undefined) return { ...plan, nextInitContainer: firstInit };
    return { ...plan, toStart };
  }

  plan.ephemeralToStart = (pod.spec.ephemeralContainers ?? []).filter(
    (container) => newestContainer(record, container.name) === undefined, // never started twice
  );

  const init = initProgress(pod, record);
  if (!init.done) {
    if (init.next === undefined) return plan;
    if (init.failed !== undefined && !restarts) return { ...plan, killPod: true };
    if (init.failed?.state === "unknown") {
      const message = `Init container is in "${init.failed.state}" state, try killing it before restart`;
      plan.toKill.push({ record: init.failed, container: init.next, message, reason: "Unknown" });
    }
    return { ...plan, nextInitContainer: init.next };
  }

  let keep = 0;
  for (const container of pod.spec.containers) {
    const current = newestContainer(record, container.name);
    if (current === undefined || current.state !== "running") {
      if (!shouldRestart(pod, record, container.name)) continue;
      plan.toStart.push(container);
      if (current?.state === "unknown") {
        const message = `Container is in "${current.state}" state, try killing it before restart`;
        plan.toKill.push({ record: current, container, message, reason: "Unknown" });
      }
      continue;
    }
    let restart = restarts;
    let message: string;
    let reason: ContainerToKill["reason"] = "";
    if (current.hash !== "" && current.hash !== hashOf(container)) {
      message = `Container ${container.name} definition changed`;
      restart = true;
    } else if (probes.liveness(current.id) === "failure") {
      message = `Container ${container.name} failed liveness probe`;
      reason = "LivenessProbe";
    } else if (probes.startup(current.id) === "failure") {
      message = `Container ${container.name} failed startup probe`;
      reason = "StartupProbe";
    } else {
      keep++;
      continue;
    }
    if (restart) {
      message += ", will be restarted";
      plan.toStart.push(container);
    }
    plan.toKill.push({ record: current, container, message, reason });
  }
  return { ...plan, killPod: keep === 0 && plan.toStart.length === 0 };
}

function sandboxChange(pod: NodePod, record: PodRecord): { changed: boolean; attempt: number; id: string | undefined } {
  const newest = record.sandboxes[0];
  if (newest === undefined) return { changed: true, attempt: 0, id: undefined };
  const next = { changed: true, attempt: newest.attempt + 1, id: newest.id as string | undefined };
  const ready = record.sandboxes.filter((sandbox) => sandbox.ready).length;
  if (ready > 1 || !newest.ready) return next;
  const wantsHostNetwork = pod.spec.hostNetwork === true;
  if (newest.hostNetwork !== wantsHostNetwork) return { ...next, id: undefined };
  if (!wantsHostNetwork && newest.ips.length === 0) return next;
  return { changed: false, attempt: newest.attempt, id: newest.id };
}

function hasSucceeded(record: PodRecord, name: string): boolean {
  const newest = newestContainer(record, name);
  return newest?.state === "exited" && newest.exitCode === 0;
}

interface InitProgress {
  done: boolean;
  next?: AnyContainer | undefined;
  /** The last one that failed and has to run again. */
  failed?: ContainerRecord;
}

function initProgress(pod: NodePod, record: PodRecord): InitProgress {
  const inits = pod.spec.initContainers ?? [];
  if (inits.length === 0) return { done: true };
  // A container that runs proves that initialisation was done once, even if the traces of it are gone.
  if (pod.spec.containers.some((container) => newestContainer(record, container.name)?.state === "running"))
    return { done: true };
  for (const container of inits.toReversed()) {
    const newest = newestContainer(record, container.name);
    if (newest !== undefined && initFailed(newest)) return { done: false, next: container, failed: newest };
  }
  for (let i = inits.length - 1; i >= 0; i--) {
    const newest = newestContainer(record, (inits[i] as AnyContainer).name);
    if (newest?.state === "running") return { done: false };
    if (newest?.state !== "exited") continue;
    return i === inits.length - 1 ? { done: true } : { done: false, next: inits[i + 1] };
  }
  return { done: false, next: inits[0] };
}

function initFailed(record: ContainerRecord): boolean {
  return (record.state === "exited" && record.exitCode !== 0) || record.state === "unknown";
}

/** Whether a container that does not run should, by the restart policy and how it ended. */
export function shouldRestart(pod: NodePod, record: PodRecord, name: string): boolean {
  if (pod.metadata.deletionTimestamp != null) return false;
  const newest = newestContainer(record, name);
  if (newest === undefined) return true;
  if (newest.state === "running") return false;
  if (newest.state === "unknown" || newest.state === "created") return true;
  if (pod.spec.restartPolicy === "Never") return false;
  if (pod.spec.restartPolicy === "OnFailure") return newest.exitCode !== 0;
  return true;
}
