import { readdir, symlink, unlink } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { LifecycleHandler } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { makeFolder } from "@coxswain/apimachinery/process/files/make-folder";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { errorCode } from "@coxswain/apimachinery/process/narrowing/error-code";
import { checkLength, expand } from "../environment/expansion.ts";
import { type AnyContainer, type ContainerKind, describePod, type NodePod } from "../pod/pod.ts";
import { ContainerError } from "./container-error.ts";
import type { Cri, CriInput } from "./cri-schema.ts";
import type { RunHook } from "./hook-call.ts";
import { HookError } from "./hook-call.ts";
import { containerAnnotations, containerLabels } from "./labels.ts";
import { podLogDirectory } from "./pod-logs.ts";
import { type ContainerRecord, newestContainer, type PodRecord } from "./pod-record.ts";
import { type ContainerRuntime, isRuntimeNotFound, RuntimeError } from "./runtime.ts";
import { containerSecurityContext, violatesNonRoot } from "./security-context.ts";

/** Records an event for a Pod, or for one of its containers. */
export type ContainerEvent = (
  pod: NodePod,
  container: { name: string; kind: ContainerKind } | undefined,
  type: "Normal" | "Warning",
  reason: string,
  message: string,
  /** Annotations of the event. */
  annotations?: Readonly<Record<string, string>>,
) => void;

/** Dependencies for starting and stopping containers. */
export interface ContainerDependencies {
  runtime: ContainerRuntime;
  clock: Clock;
  log: Logger;
  event: ContainerEvent;
  runHook: RunHook;
  /** `/var/log/pods` and `/var/log/containers`. */
  podLogsDir: string;
  containerLogsDir: string;
  seccompDefault: boolean;
  seccompRoot: string;
}

/** A container to start and its Pod's state. */
interface StartRequest {
  pod: NodePod;
  container: AnyContainer;
  kind: ContainerKind;
  record: PodRecord;
  sandboxId: string;
  sandboxConfig: CriInput<"PodSandboxConfig">;
  podIp: string;
  imageRef: string;
  image: Cri<"Image"> | undefined;
  resources: CriInput<"LinuxContainerResources">;
  /** Aborted when the Pod is terminating: a running postStart hook is not awaited any longer. */
  signal: AbortSignal;
  /** Creates mounts and environment; its errors are reported as CreateContainerConfigError. */
  options(): Promise<ContainerOptions>;
}

/** Parts of the container configuration that depend on volumes, environment and devices. */
export interface ContainerOptions {
  environment: ReadonlyMap<string, string>;
  mounts: readonly CriInput<"Mount">[];
  devices: readonly CriInput<"Device">[];
  /** Groups of the Pod's volumes. */
  volumeGroups: readonly number[];
  /** Annotations besides the agent's own. */
  annotations: Readonly<Record<string, string>>;
}

/**
 * Creates and starts a container whose image is present.
 * @throws ContainerError CreateContainerConfigError, CreateContainerError, RunContainerError, PostStartHookError
 * Source: pkg/kubelet/kuberuntime/kuberuntime_container.go startContainer
 */
export async function startContainer(deps: ContainerDependencies, request: StartRequest): Promise<void> {
  const { pod, container, kind } = request;
  const event = (type: "Normal" | "Warning", reason: string, message: string): void =>
    deps.event(pod, { name: container.name, kind }, type, reason, message);
  const logDirectory = podLogDirectory(deps.podLogsDir, pod);
  const previous = newestContainer(request.record, container.name);
  const restartCount = previous === undefined ? await nextByLogs(join(logDirectory, container.name)) : previous.restartCount + 1;

  let config: CriInput<"ContainerConfig">;
  try {
    const problem = violatesNonRoot(pod, container, request.image);
    if (problem !== undefined) throw new Error(problem);
    const own = await request.options();
    config = containerConfig(request, {
      ...own,
      restartCount,
      targetId: targetOf(container, request.record),
      seccompDefault: deps.seccompDefault,
      seccompRoot: deps.seccompRoot,
    });
    await makeFolder(join(logDirectory, container.name), 0o755);
  } catch (err) {
    const message = messageOf(err);
    event("Warning", "Failed", `Error: ${message}`);
    throw new ContainerError("CreateContainerConfigError", message, { cause: err });
  }

  let id: string;
  try {
    id = await deps.runtime.createContainer(request.sandboxId, config, request.sandboxConfig);
  } catch (err) {
    const message = detailsOf(err);
    event("Warning", "Failed", `Error: ${message}`);
    throw new ContainerError("CreateContainerError", message, { cause: err });
  }
  event("Normal", "Created", `Created container ${container.name}`);
  try {
    await deps.runtime.startContainer(id);
  } catch (err) {
    const message = detailsOf(err);
    event("Warning", "Failed", `Error: ${message}`);
    throw new ContainerError("RunContainerError", message, { cause: err });
  }
  event("Normal", "Started", `Started container ${container.name}`);
  await linkLog(deps, pod, container.name, id, join(logDirectory, container.name, `${restartCount}.log`));

  const postStart = container.lifecycle?.postStart;
  if (postStart === undefined) return;
  try {
    await unlessAborted(
      deps.runHook({ pod, container, containerId: id, podIp: request.podIp, handler: postStart }),
      request.signal,
    );
  } catch (err) {
    const message = hookFailure(postStart, container.name, pod, err);
    event("Warning", "FailedPostStartHook", message);
    const why = { message: "FailedPostStartHook", podIp: request.podIp };
    await killContainer(deps, { pod, container, kind, record: { id }, ...why }).catch((err) =>
      deps.log.error("Failed to kill container", err, { pod: describePod(pod), container: container.name }),
    );
    throw new ContainerError("PostStartHookError", `${message}`, { cause: err });
  }
}

/** Settles with `work`, or resolves when the signal is aborted. */
async function unlessAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  const aborted = Promise.withResolvers<void>();
  const stop = (): void => aborted.resolve();
  if (signal.aborted) stop();
  signal.addEventListener("abort", stop, { once: true });
  try {
    await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", stop);
    work.catch(() => undefined); // the result is not awaited after an abort
  }
}

/** The container whose PID namespace an ephemeral container joins. @throws Error when it does not exist */
function targetOf(container: AnyContainer, record: PodRecord): string | undefined {
  const name = "targetContainerName" in container ? container.targetContainerName : undefined;
  if (!name) return undefined;
  const target = newestContainer(record, name);
  if (target === undefined) throw new Error(`unable to find target container ${name}`);
  return target.id;
}

function hookFailure(handler: LifecycleHandler, name: string, pod: NodePod, err: unknown): string {
  const output = JSON.stringify(err instanceof HookError ? err.output : "");
  const failure = `for Container ${JSON.stringify(name)} in Pod ${JSON.stringify(describePod(pod))} failed - error: ${messageOf(err)}, message: ${output}`;
  if (handler.exec !== undefined) {
    const command = `[${(handler.exec.command ?? []).join(" ")}]`;
    return `Exec lifecycle hook (${command}) ${failure}`;
  }
  return `HTTP lifecycle hook (${handler.httpGet?.path ?? ""}) ${failure}`;
}

/** The gRPC description without the code, as upstream shows it here. */
function detailsOf(err: unknown): string {
  return err instanceof RuntimeError ? err.details : messageOf(err);
}

/** Pure: the CRI container configuration. */
function containerConfig(
  request: Omit<StartRequest, "options">,
  options: ContainerOptions & {
    restartCount: number;
    targetId: string | undefined;
    seccompDefault: boolean;
    seccompRoot: string;
  },
): CriInput<"ContainerConfig"> {
  const { pod, container } = request;
  const lookup = (name: string): string | undefined => options.environment.get(name);
  let length = 0;
  const expanded = (word: string): string => {
    const text = expand(word, lookup);
    length += text.length;
    checkLength(length);
    return text;
  };
  return {
    metadata: { name: container.name, attempt: options.restartCount },
    image: { image: request.imageRef },
    command: (container.command ?? []).map(expanded),
    args: (container.args ?? []).map(expanded),
    workingDir: container.workingDir ?? "",
    envs: [...options.environment].map(([key, value]) => ({ key, value })),
    mounts: options.mounts,
    devices: options.devices,
    labels: containerLabels(pod, container),
    annotations: { ...options.annotations, ...containerAnnotations(pod, container, options.restartCount) },
    logPath: join(container.name, `${options.restartCount}.log`),
    stdin: container.stdin ?? false,
    stdinOnce: container.stdinOnce ?? false,
    tty: container.tty ?? false,
    linux: {
      resources: request.resources,
      securityContext: containerSecurityContext(pod, container, request.image, options),
    },
  };
}

/** The next restart count according to the log files, for containers that the runtime no longer knows. */
async function nextByLogs(folder: string): Promise<number> {
  let names: string[];
  try {
    names = await readdir(folder);
  } catch {
    return 0;
  }
  const counts = names.map((name) => /^(\d+)\.log/.exec(name)?.[1]).filter((text) => text !== undefined);
  return counts.length === 0 ? 0 : Math.max(...counts.map(Number)) + 1;
}

/** `<pod>_<namespace>_<container>-<id>.log`, where log collectors expect it. */
async function linkLog(deps: ContainerDependencies, pod: NodePod, name: string, id: string, logPath: string): Promise<void> {
  try {
    await makeFolder(deps.containerLogsDir, 0o755);
    await symlink(logPath, join(deps.containerLogsDir, logLinkName(pod.metadata, name, id))).catch((err) => {
      if (errorCode(err) !== "EEXIST") throw err;
    });
  } catch (err) {
    deps.log.warn("cannot link a container's log", { log: logPath, reason: messageOf(err) });
  }
}

function logLinkName(pod: { name: string; namespace: string }, name: string, id: string): string {
  const suffix = `-${id}.log`;
  return `${`${pod.name}_${pod.namespace}_${name}`.slice(0, 255 - suffix.length)}${suffix}`;
}

/** A container to stop. */
export interface KillRequest {
  pod: NodePod;
  container: AnyContainer;
  kind?: ContainerKind;
  record: Pick<ContainerRecord, "id">;
  /** Message of the Killing event; `""` for the default text. */
  message: string;
  podIp: string;
  reason?: "" | "LivenessProbe" | "StartupProbe" | "Unknown";
  /** Overrides the grace period of the Pod. */
  graceSecondsOverride?: number | undefined;
}

const minimumGraceSeconds = 2;

/**
 * Stops a container and waits until it has exited: preStop hook, stop signal, then SIGKILL, all within the grace period.
 * Source: pkg/kubelet/kuberuntime/kuberuntime_container.go killContainer
 */
export async function killContainer(deps: ContainerDependencies, request: KillRequest): Promise<void> {
  const { pod, container, record, kind = "regular" } = request;
  const message = request.message === "" ? `Stopping container ${container.name}` : request.message;
  deps.event(pod, { name: container.name, kind }, "Normal", "Killing", message);
  let graceSeconds = request.graceSecondsOverride ?? gracePeriod(request);
  const preStop = container.lifecycle?.preStop;
  if (preStop !== undefined && graceSeconds > 0) {
    const started = deps.clock.monotonic();
    await runPreStop(deps, request, preStop, graceSeconds * 1000);
    graceSeconds -= Math.floor((deps.clock.monotonic() - started) / 1000);
  }
  if (request.graceSecondsOverride === undefined) graceSeconds = Math.max(graceSeconds, minimumGraceSeconds);
  try {
    await deps.runtime.stopContainer(record.id, Math.max(0, graceSeconds));
  } catch (err) {
    if (!isRuntimeNotFound(err)) throw err;
  }
}

function gracePeriod({ pod, container, reason }: KillRequest): number {
  if (pod.metadata.deletionGracePeriodSeconds !== undefined) return pod.metadata.deletionGracePeriodSeconds;
  // Probes may override the grace period.
  const probe =
    reason === "LivenessProbe" ? container.livenessProbe : reason === "StartupProbe" ? container.startupProbe : undefined;
  return probe?.terminationGracePeriodSeconds ?? pod.spec.terminationGracePeriodSeconds ?? minimumGraceSeconds;
}

async function runPreStop(
  deps: ContainerDependencies,
  { pod, container, kind = "regular", record, podIp }: KillRequest,
  handler: LifecycleHandler,
  limitMs: number,
): Promise<void> {
  const stopTimer = new AbortController();
  const hook = deps.runHook({ pod, container, containerId: record.id, podIp, handler }).catch((err: unknown) => {
    const message = hookFailure(handler, container.name, pod, err);
    deps.event(pod, { name: container.name, kind }, "Warning", "FailedPreStopHook", message);
  });
  const limit = deps.clock.sleep(limitMs, stopTimer.signal).catch(() => undefined);
  await Promise.race([hook, limit]);
  stopTimer.abort();
}

/** Removes a container, its log files and the link to the log. */
export async function removeContainer(
  deps: Pick<ContainerDependencies, "runtime" | "containerLogsDir" | "log">,
  pod: { name: string; namespace: string },
  record: Pick<ContainerRecord, "id" | "name" | "logPath">,
): Promise<void> {
  await unlink(join(deps.containerLogsDir, logLinkName(pod, record.name, record.id))).catch(() => undefined);
  if (record.logPath !== "") {
    const folder = record.logPath.slice(0, record.logPath.lastIndexOf("/"));
    const base = record.logPath.slice(folder.length + 1);
    for (const name of await readdir(folder).catch((): string[] => [])) {
      if (name === base || name.startsWith(`${base}.`)) await unlink(join(folder, name)).catch(() => undefined);
    }
  }
  try {
    await deps.runtime.removeContainer(record.id);
  } catch (err) {
    if (!isRuntimeNotFound(err)) throw err;
  }
}
