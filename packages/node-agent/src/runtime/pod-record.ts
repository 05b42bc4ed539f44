import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { Cri } from "./cri-schema.ts";
import { annotationNames, labelNames } from "./labels.ts";
import { readLogTail } from "./logs.ts";
import { type ContainerRuntime, containerState, isRuntimeNotFound, sandboxState } from "./runtime.ts";

type ContainerStateName = "created" | "running" | "exited" | "unknown";

/** A Pod sandbox in the runtime. */
export interface SandboxRecord {
  id: string;
  attempt: number;
  ready: boolean;
  /** Milliseconds since the epoch. */
  createdAt: number;
  /** Empty for Pods in the host network. */
  ips: readonly string[];
  hostNetwork: boolean;
}

/** A container in the runtime. Times are in ms since the epoch, 0 when not set. */
export interface ContainerRecord {
  id: string;
  sandboxId: string;
  name: string;
  state: ContainerStateName;
  image: string;
  imageRef: string;
  /** Hash of the spec that it was created from; `""` when it was not created by a kubelet. */
  hash: string;
  restartCount: number;
  createdAt: number;
  startedAt: number;
  finishedAt: number;
  exitCode: number;
  reason: string;
  message: string;
  logPath: string;
  annotations: Readonly<Record<string, string>>;
}

/** State of one Pod in the runtime. Both lists are sorted newest first. */
export interface PodRecord {
  uid: string;
  name: string;
  namespace: string;
  sandboxes: readonly SandboxRecord[];
  containers: readonly ContainerRecord[];
}

/** Reads all sandboxes and containers that are labelled with the Pod's UID. */
export async function readPodRecord(
  runtime: ContainerRuntime,
  pod: { uid: string; name: string; namespace: string },
): Promise<PodRecord> {
  const labels = { [labelNames.podUid]: pod.uid };
  const [sandboxes, containers] = await Promise.all([runtime.listPodSandboxes({ labels }), runtime.listContainers({ labels })]);
  const [sandboxRecords, containerRecords] = await Promise.all([
    Promise.all(sandboxes.map((sandbox) => present(readSandbox(runtime, sandbox.id)))),
    Promise.all(containers.map((container) => present(readContainer(runtime, container)))),
  ]);
  return {
    ...pod,
    sandboxes: sandboxRecords.filter(isPresent).sort((a, b) => b.createdAt - a.createdAt || b.attempt - a.attempt),
    containers: containerRecords.filter(isPresent).sort((a, b) => b.createdAt - a.createdAt || b.restartCount - a.restartCount),
  };
}

/** The newest container with that name. */
export function newestContainer(record: PodRecord, name: string): ContainerRecord | undefined {
  return containersNamed(record, name)[0];
}

/** Fewer containers are searched one by one. */
const manyContainers = 32;

const byName = new WeakMap<readonly ContainerRecord[], ReadonlyMap<string, readonly ContainerRecord[]>>();

/** The containers with that name, the newest first. Each of a pod's containers is looked up several times, so the names of many are indexed. */
export function containersNamed({ containers }: PodRecord, name: string): readonly ContainerRecord[] {
  if (containers.length < manyContainers) return containers.filter((container) => container.name === name);
  const groups = byName.get(containers) ?? Map.groupBy(containers, (container) => container.name);
  byName.set(containers, groups);
  return groups.get(name) ?? [];
}

/** The IPs of the newest sandbox; empty when it is not ready. */
export function podIps(record: PodRecord): readonly string[] {
  const sandbox = record.sandboxes[0];
  return sandbox?.ready ? sandbox.ips : [];
}

async function present<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (err) {
    if (isRuntimeNotFound(err)) return undefined; // removed since it was listed
    throw err;
  }
}

function isPresent<T>(value: T | undefined): value is T {
  return value !== undefined;
}

const nanosecondsPerMs = 1e6;

async function readSandbox(runtime: ContainerRuntime, id: string): Promise<SandboxRecord> {
  const status = await runtime.podSandboxStatus(id);
  const network = status.network;
  const ips = [network?.ip ?? "", ...(network?.additionalIps ?? []).map((entry) => entry.ip)].filter((ip) => ip !== "");
  return {
    id: status.id,
    attempt: status.metadata?.attempt ?? 0,
    ready: status.state === sandboxState.ready,
    createdAt: status.createdAt / nanosecondsPerMs,
    ips,
    hostNetwork: status.linux?.namespaces?.options?.network === 2,
  };
}

const stateNames: readonly ContainerStateName[] = ["created", "running", "exited", "unknown"];

async function readContainer(runtime: ContainerRuntime, listed: Cri<"Container">): Promise<ContainerRecord> {
  const status = await runtime.containerStatus(listed.id);
  const exited = status.state === containerState.exited;
  return {
    id: status.id,
    sandboxId: listed.podSandboxId,
    name: status.labels[labelNames.containerName] ?? status.metadata?.name ?? "",
    state: stateNames[status.state] ?? "unknown",
    image: status.image?.image ?? "",
    imageRef: status.imageRef,
    hash: status.annotations[annotationNames.hash] ?? "",
    restartCount: Number(status.annotations[annotationNames.restartCount] ?? status.metadata?.attempt ?? 0),
    createdAt: status.createdAt / nanosecondsPerMs,
    startedAt: status.startedAt / nanosecondsPerMs,
    finishedAt: status.finishedAt / nanosecondsPerMs,
    exitCode: status.exitCode,
    reason: status.reason,
    message: exited ? await terminationMessage(status) : status.message,
    logPath: status.logPath,
    annotations: status.annotations,
  };
}

const maxTerminationMessageBytes = 4096;
const maxFallbackLines = 80;
const maxFallbackBytes = 2048;

/**
 * The contents of the termination message path. With the policy FallbackToLogsOnError, the end of the log when the container
 * failed without a message. Source: pkg/kubelet/kuberuntime/kuberuntime_container.go getTerminationMessage
 */
async function terminationMessage(status: Cri<"ContainerStatus">): Promise<string> {
  const path = status.annotations[annotationNames.terminationMessagePath] ?? "";
  const fallback =
    status.annotations[annotationNames.terminationMessagePolicy] === "FallbackToLogsOnError" && status.exitCode !== 0;
  let message = status.message;
  if (path !== "") {
    const mount = status.mounts.find((candidate) => candidate.containerPath === path);
    if (mount !== undefined) {
      try {
        const text = await readEnd(mount.hostPath, maxTerminationMessageBytes);
        if (text !== "") return message === "" ? text : `${message}: ${text}`;
      } catch (err) {
        message = `Error on reading termination message from ${mount.hostPath}: ${messageOf(err)}`;
      }
    }
  }
  if (fallback && status.logPath !== "") {
    const text = await readLogTail(status.logPath, maxFallbackLines, maxFallbackBytes);
    if (text !== "") return message === "" ? text : `${message}: ${text}`;
  }
  return message;
}

/** Containers control this path if they mount a volume there: it may be huge, a link, or a FIFO without writer. */
async function readEnd(path: string, limitBytes: number): Promise<string> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const info = await file.stat();
    if (!info.isFile()) throw new Error("not a regular file");
    const length = Math.min(info.size, limitBytes);
    const buffer = Buffer.alloc(length);
    const { bytesRead } = await file.read(buffer, 0, length, Math.max(0, info.size - limitBytes));
    return buffer.subarray(0, bytesRead).toString("utf8");
  } finally {
    await file.close();
  }
}
