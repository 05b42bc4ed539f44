import { readFile } from "node:fs/promises";
import { labelNames } from "../runtime/labels.ts";
import { type ContainerRuntime, containerState, sandboxState } from "../runtime/runtime.ts";
import { cgroupOf } from "./cadvisor/cadvisor.ts";
import { type CgroupReader, type CgroupUsage, type InterfaceUsage, interfacesOf } from "./cadvisor/cgroup-usage.ts";
import type { NetworkStats } from "./usage-stats.ts";

/** What the kernel counts for Pods and their containers. Runtimes that report containers only know less of it. */
export interface KernelUsage {
  /** By UID. Without `cgroup` when the runtime chooses the parent of the containers' cgroups. */
  pods: ReadonlyMap<string, PodUsage>;
  /** By id. */
  containers: ReadonlyMap<string, CgroupUsage>;
}

interface PodUsage {
  cgroup?: CgroupUsage;
  interfaces?: readonly InterfaceUsage[];
  /** Of all containers and the sandbox. */
  processes: number;
}

/** @param parents parent cgroups of containers by UID of the Pod; `""` when the runtime decides */
export async function kernelUsage(
  runtime: Pick<ContainerRuntime, "listContainers" | "listPodSandboxes">,
  reader: CgroupReader,
  parents: ReadonlyMap<string, string>,
): Promise<KernelUsage> {
  const [sandboxes, listed] = await Promise.all([runtime.listPodSandboxes(), runtime.listContainers()]);
  const pods = new Map<string, PodUsage>();
  const containers = new Map<string, CgroupUsage>();
  for (const [uid, path] of parents) pods.set(uid, { ...(path !== "" && { cgroup: await reader.usage(path) }), processes: 0 });
  for (const { id, metadata, state } of sandboxes) {
    const pod = pods.get(metadata?.uid ?? "");
    if (pod === undefined || state !== sandboxState.ready) continue;
    const { pids } = await cgroupOf(reader, parents.get(metadata?.uid ?? ""), id);
    pod.processes += pids.length;
    if (pids[0] !== undefined) pod.interfaces = await interfacesOf(pids[0]);
  }
  for (const { id, labels, state } of listed) {
    const uid = labels[labelNames.podUid] ?? "";
    const pod = pods.get(uid);
    if (pod === undefined || state !== containerState.running) continue;
    const { usage, pids } = await cgroupOf(reader, parents.get(uid), id);
    pod.processes += pids.length;
    containers.set(id, usage);
  }
  return { pods, containers };
}

/** `network` of a Pod or the node; the fields of the default interface, `eth0`, are repeated beside the list. */
export function networkStats(time: string, interfaces: readonly InterfaceUsage[]): NetworkStats {
  const all = interfaces.map(({ name, receive, transmit }) => ({
    name,
    rxBytes: receive.bytes,
    rxErrors: receive.errors,
    txBytes: transmit.bytes,
    txErrors: transmit.errors,
  }));
  const main = all.find(({ name }) => name === "eth0") ?? { name: "" };
  return { time, ...main, ...(all.length > 0 && { interfaces: all }) };
}

/** This process' cgroup, undefined when CPU and memory are counted in different ones. */
export async function ownCgroup(): Promise<string | undefined> {
  return cgroupIn(await readFile("/proc/self/cgroup", "utf8").catch(() => ""));
}

/**
 * @param text of `/proc/<pid>/cgroup`
 * Source: pkg/kubelet/cm/container_manager_linux.go getContainer
 */
export function cgroupIn(text: string): string | undefined {
  const paths = new Map<string, string>();
  for (const line of text.split("\n")) {
    const [, controllers, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (path !== undefined) for (const controller of controllers!.split(",")) paths.set(controller, path);
  }
  if (!paths.has("cpu") && !paths.has("memory")) return paths.get("");
  if (paths.get("cpu") !== paths.get("memory")) return undefined;
  return paths.get("name=systemd") ?? paths.get("cpu");
}
