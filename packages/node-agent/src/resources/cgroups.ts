import { mkdir, readdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { NodePod } from "../pods/pod.ts";
import { cpuQuotaUs, cpuShares } from "./container-resources.ts";
import { podResources } from "./pod-resources.ts";
import { qosClass } from "./qos.ts";

export interface CgroupOptions {
  /** `--cgroup-root`: `/` or a cgroup that exists in every controller. */
  root: string;
  /** `--cgroups-per-qos`; without it containers go where the runtime puts them. */
  perQos: boolean;
  cfsQuota: boolean;
  cfsPeriodUs: number;
  /** `--pod-max-pids`; -1 is without limit. */
  podPidsLimit: number;
  log: Logger;
  /** Where the controllers are mounted; another folder in tests. */
  mountPoint?: string;
}

/** What the node keeps for Pods, written to the limits of the `kubepods` cgroup. */
export interface NodeAllocatable {
  milliCpu: number;
  memoryBytes: number;
}

export interface Cgroups {
  /** Makes `kubepods`, `kubepods/burstable` and `kubepods/besteffort`. @throws Error when cgroups cannot be written. */
  start(allocatable: NodeAllocatable, enforce: boolean): Promise<void>;
  /** The parent of a Pod's containers; `""` when the runtime decides. */
  parentOf(pod: NodePod): string;
  ensure(pod: NodePod): Promise<void>;
  exists(uid: string): Promise<boolean>;
  /** Takes the Pod's cgroup away; false while processes are left in it. */
  remove(uid: string): Promise<boolean>;
  /** Pods that have a cgroup here, wanted or not. */
  list(): Promise<string[]>;
  /** Weight of the middle class follows what its Pods ask for. */
  updateBurstable(pods: readonly NodePod[]): Promise<void>;
}

const controllersWithLimits = ["cpu", "memory", "pids"] as const;

/**
 * Pod cgroups under cgroupfs, for the first version of the hierarchy (one tree for each controller) and the unified one.
 * Source: pkg/kubelet/cm/cgroup_manager_linux.go, pod_container_manager_linux.go, qos_container_manager_linux.go
 */
export async function newCgroups(options: CgroupOptions): Promise<Cgroups> {
  const mountPoint = options.mountPoint ?? "/sys/fs/cgroup";
  const trees = await controllerTrees(mountPoint);
  const base = join("/", options.root, "kubepods");
  const classes = { Guaranteed: base, Burstable: join(base, "burstable"), BestEffort: join(base, "besteffort") };
  const unified = trees.length === 1 && trees[0]?.controller === "";

  async function make(path: string): Promise<void> {
    for (const { dir, controller } of trees) {
      const full = join(dir, path);
      await mkdir(full, { recursive: true, mode: 0o755 });
      if (controller === "cpuset") await inheritCpuset(dir, path);
      if (unified) await delegate(dir, path);
    }
  }

  /** A limit that the kernel refuses (no such controller here) is not worth a Pod. */
  async function write(controller: string, path: string, file: string, value: string | number): Promise<void> {
    const tree = trees.find((candidate) => candidate.controller === controller || unified);
    if (tree === undefined) return;
    try {
      await writeFile(join(tree.dir, path, file), String(value));
    } catch (err) {
      options.log.warn("cannot set a limit of a cgroup", { cgroup: path, file, value, reason: (err as Error).message });
    }
  }

  async function limit(
    path: string,
    limits: { shares?: number; quotaUs?: number; memoryBytes?: number; pids?: number },
  ): Promise<void> {
    if (limits.shares !== undefined) {
      if (unified) await write("cpu", path, "cpu.weight", 1 + Math.trunc(((limits.shares - 2) * 9999) / 262_142));
      else await write("cpu", path, "cpu.shares", limits.shares);
    }
    if (limits.quotaUs !== undefined && limits.quotaUs > 0) {
      if (unified) await write("cpu", path, "cpu.max", `${limits.quotaUs} ${options.cfsPeriodUs}`);
      else {
        await write("cpu", path, "cpu.cfs_period_us", options.cfsPeriodUs);
        await write("cpu", path, "cpu.cfs_quota_us", limits.quotaUs);
      }
    }
    if (limits.memoryBytes !== undefined && limits.memoryBytes > 0) {
      await write("memory", path, unified ? "memory.max" : "memory.limit_in_bytes", limits.memoryBytes);
    }
    if (limits.pids !== undefined && limits.pids > 0) await write("pids", path, "pids.max", limits.pids);
  }

  const pathOfUid = async (uid: string): Promise<string | undefined> => {
    const first = trees.find((tree) => tree.controller === "memory") ?? trees[0];
    if (first === undefined) return undefined;
    for (const parent of Object.values(classes)) {
      const names = await readdirOrNone(join(first.dir, parent));
      if (names.includes(`pod${uid}`)) return join(parent, `pod${uid}`);
    }
    return undefined;
  };

  return {
    async start(allocatable, enforce) {
      if (!options.perQos) return;
      for (const path of Object.values(classes)) await make(path);
      if (enforce) await limit(base, { shares: cpuShares(allocatable.milliCpu), memoryBytes: allocatable.memoryBytes });
      await limit(classes.BestEffort, { shares: 2 });
    },
    parentOf: (pod) => (options.perQos ? join(classes[qosClass(pod)], `pod${pod.metadata.uid}`) : ""),
    async ensure(pod) {
      if (!options.perQos) return;
      const path = join(classes[qosClass(pod)], `pod${pod.metadata.uid}`);
      await make(path);
      await limit(path, podLimits(pod, options));
    },
    exists: async (uid) => options.perQos && (await pathOfUid(uid)) !== undefined,
    async remove(uid) {
      if (!options.perQos) return true;
      const path = await pathOfUid(uid);
      if (path === undefined) return true;
      let gone = true;
      for (const { dir } of trees) gone = (await removeTree(join(dir, path))) && gone;
      return gone;
    },
    async list() {
      if (!options.perQos) return [];
      const uids = new Set<string>();
      const first = trees.find((tree) => tree.controller === "memory") ?? trees[0];
      if (first === undefined) return [];
      for (const parent of Object.values(classes)) {
        for (const name of await readdirOrNone(join(first.dir, parent))) if (/^pod./.test(name)) uids.add(name.slice(3));
      }
      return [...uids];
    },
    async updateBurstable(pods) {
      if (!options.perQos) return;
      let milliCpu = 0;
      for (const pod of pods) {
        if (qosClass(pod) === "Burstable") milliCpu += Number(podResources(pod, "requests").get("cpu")?.milliValue() ?? 0);
      }
      await limit(classes.Burstable, { shares: cpuShares(milliCpu) });
    },
  };
}

/** Pure: a Pod is limited only where each of its containers is. */
export function podLimits(
  pod: NodePod,
  options: { cfsQuota: boolean; cfsPeriodUs: number; podPidsLimit: number },
): { shares: number; quotaUs?: number; memoryBytes?: number; pids?: number } {
  const requests = podResources(pod, "requests");
  const limits = podResources(pod, "limits");
  const everyContainer = (name: string): boolean =>
    pod.spec.containers.every((container) => container.resources?.limits?.[name] !== undefined);
  const milliCpu = Number(requests.get("cpu")?.milliValue() ?? 0);
  const cpuLimit = everyContainer("cpu") ? Number(limits.get("cpu")?.milliValue() ?? 0) : 0;
  const memoryLimit = everyContainer("memory") ? Number(limits.get("memory")?.value() ?? 0) : 0;
  return {
    shares: cpuShares(milliCpu),
    ...(options.cfsQuota && cpuLimit > 0 ? { quotaUs: cpuQuotaUs(cpuLimit, options.cfsPeriodUs) } : {}),
    ...(memoryLimit > 0 ? { memoryBytes: memoryLimit } : {}),
    ...(options.podPidsLimit > 0 ? { pids: options.podPidsLimit } : {}),
  };
}

async function controllerTrees(mountPoint: string): Promise<{ controller: string; dir: string }[]> {
  const names = await readdirOrNone(mountPoint);
  if (names.includes("cgroup.controllers")) return [{ controller: "", dir: mountPoint }];
  const trees: { controller: string; dir: string }[] = [];
  // `unified` beside the others has no controllers, but processes are in it too: its cgroups have to go with the rest.
  for (const controller of names) {
    if (controller.includes(",")) continue; // a link to one of two controllers that share a tree, or the tree of both
    const entries = await readdirOrNone(join(mountPoint, controller));
    if (entries.includes("cgroup.procs")) trees.push({ controller, dir: join(mountPoint, controller) });
  }
  return trees;
}

async function readdirOrNone(dir: string): Promise<string[]> {
  try {
    return await readdir(dir);
  } catch {
    return [];
  }
}

/** A new cpuset has no CPUs and takes no process until it is given its parent's, from the top down. */
async function inheritCpuset(dir: string, path: string): Promise<void> {
  let at = dir;
  for (const part of path.split("/").filter((name) => name !== "")) {
    const next = join(at, part);
    for (const file of ["cpuset.cpus", "cpuset.mems"]) {
      const own = (await readFile(join(next, file), "utf8")).trim();
      if (own === "") await writeFile(join(next, file), (await readFile(join(at, file), "utf8")).trim());
    }
    at = next;
  }
}

/** In the unified tree a parent hands each controller down. */
async function delegate(dir: string, path: string): Promise<void> {
  let at = dir;
  for (const part of path.split("/").filter((name) => name !== "")) {
    const available = (await readFile(join(at, "cgroup.controllers"), "utf8")).trim().split(" ");
    for (const controller of controllersWithLimits.filter((name) => available.includes(name))) {
      await writeFile(join(at, "cgroup.subtree_control"), `+${controller}`);
    }
    at = join(at, part);
  }
}

/** From the leaves up; a cgroup with processes stays. */
async function removeTree(dir: string): Promise<boolean> {
  let gone = true;
  let entries: { name: string; isDirectory(): boolean }[];
  try {
    entries = await readdir(dir, { withFileTypes: true });
  } catch {
    return true;
  }
  for (const entry of entries) if (entry.isDirectory()) gone = (await removeTree(join(dir, entry.name))) && gone;
  try {
    await rmdir(dir);
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code !== "ENOENT") return false;
  }
  return gone;
}
