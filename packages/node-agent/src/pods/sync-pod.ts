import type { AnyContainer, NodePod } from "../pod/pod.ts";
import type { ProbeResults } from "../probes/results.ts";
import { containerHash } from "../runtime/labels.ts";
import { type ContainerRecord, newestContainer, type PodRecord } from "../runtime/pod-record.ts";
import { shouldRestart } from "../runtime/should-restart.ts";

/** A container that has to be killed, and why. */
interface ContainerToKill {
  record: ContainerRecord;
  container: AnyContainer;
  message: string;
  reason: "" | "LivenessProbe" | "StartupProbe" | "Unknown";
}

/** Actions for a Pod, in this order: kill, create the sandbox, start containers. */
export interface PodActions {
  /** Stop all containers and the sandbox. */
  killPod: boolean;
  createSandbox: boolean;
  /** The newest usable sandbox; undefined when there is none. */
  sandboxId: string | undefined;
  attempt: number;
  nextInitContainer: AnyContainer | undefined;
  ephemeralToStart: readonly AnyContainer[];
  toStart: readonly AnyContainer[];
  toKill: readonly ContainerToKill[];
}

/**
 * Pure: the actions that bring a Pod from its state in the runtime to the desired state.
 * Source: pkg/kubelet/kuberuntime/kuberuntime_manager.go computePodActions
 */
export function planPod(pod: NodePod, record: PodRecord, probes: ProbeResults, hashOf = containerHash): PodActions {
  const sandbox = sandboxChange(pod, record);
  const plan: PodActions & { toStart: AnyContainer[]; toKill: ContainerToKill[] } = {
    killPod: sandbox.changed,
    createSandbox: sandbox.changed,
    sandboxId: sandbox.id,
    attempt: sandbox.attempt,
    nextInitContainer: undefined,
    ephemeralToStart: [],
    toStart: [],
    toKill: [],
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
    (container) => newestContainer(record, container.name) === undefined, // ephemeral containers are never restarted
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

interface SandboxChange {
  changed: boolean;
  attempt: number;
  id: string | undefined;
}

function sandboxChange(pod: NodePod, record: PodRecord): SandboxChange {
  const newest = record.sandboxes[0];
  if (newest === undefined) return { changed: true, attempt: 0, id: undefined };
  const next: SandboxChange = { changed: true, attempt: newest.attempt + 1, id: newest.id };
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
  /** The failed init container that has to be restarted. */
  failed?: ContainerRecord;
}

function initProgress(pod: NodePod, record: PodRecord): InitProgress {
  const inits = pod.spec.initContainers ?? [];
  if (inits.length === 0) return { done: true };
  // A running container implies that initialization is complete, even if the init containers were removed.
  if (pod.spec.containers.some((container) => newestContainer(record, container.name)?.state === "running"))
    return { done: true };
  for (const container of inits.toReversed()) {
    const newest = newestContainer(record, container.name);
    if (newest !== undefined && initFailed(newest)) return { done: false, next: container, failed: newest };
  }
  for (let i = inits.length - 1; i >= 0; i--) {
    const newest = newestContainer(record, inits[i]!.name);
    if (newest?.state === "running") return { done: false };
    if (newest?.state !== "exited") continue;
    return i === inits.length - 1 ? { done: true } : { done: false, next: inits[i + 1] };
  }
  return { done: false, next: inits[0] };
}

function initFailed(record: ContainerRecord): boolean {
  return (record.state === "exited" && record.exitCode !== 0) || record.state === "unknown";
}
