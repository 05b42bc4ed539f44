import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { NodePod } from "../pod/pod.ts";
import { labelNames } from "../runtime/labels.ts";
import type { ContainerRuntime } from "../runtime/runtime.ts";
import { hasStorageLimit, type PodUsage } from "./eviction.ts";
import type { Observation, Observations } from "./eviction-thresholds.ts";
import { filesystemOf } from "./machine.ts";
import { type TreeUsage, treeUsage } from "./user-files.ts";

/** Directories whose usage the file system tracks (project quotas). */
interface CountedFolders {
  /** @returns undefined for a directory without a quota */
  usage(path: string): Promise<TreeUsage | undefined>;
}

/**
 * Current availability of the node's evictable resources.
 * @param ofPods memory available to Pods; undefined when `kubepods` has no memory limit
 */
export async function observeNode(
  rootDir: string,
  imageDir: string | undefined,
  ofPods: Observation | undefined,
): Promise<Observations> {
  const [nodefs, imagefs] = await Promise.all([filesystemOf(rootDir), filesystemOf(imageDir ?? rootDir).catch(() => undefined)]);
  const seen: Observations = {
    "memory.available": nodeMemory(),
    ...(ofPods && { "allocatableMemory.available": ofPods }),
    "nodefs.available": { available: nodefs.availableBytes, capacity: nodefs.capacityBytes },
    "nodefs.inodesFree": { available: nodefs.inodesFree, capacity: nodefs.inodes },
    "pid.available": nodePids(),
  };
  if (imagefs !== undefined) {
    seen["imagefs.available"] = { available: imagefs.availableBytes, capacity: imagefs.capacityBytes };
    seen["imagefs.inodesFree"] = { available: imagefs.inodesFree, capacity: imagefs.inodes };
  }
  return seen;
}

/**
 * Available memory: capacity minus the working set; inactive page cache counts as available. Read synchronously: the kernel computes
 * it at once, and a trip to another thread takes longer.
 */
function nodeMemory(): { available: number; capacity: number } {
  const text = readFileSync("/proc/meminfo", "utf8");
  const bytes = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(text)?.[1] ?? 0) * 1024;
  const capacity = bytes("MemTotal");
  const workingSet = capacity - bytes("MemFree") - bytes("Buffers") - bytes("Inactive\\(file\\)");
  return { available: Math.max(0, capacity - Math.max(0, workingSet)), capacity };
}

function nodePids(): { available: number; capacity: number } {
  const capacity = Number(readFileSync("/proc/sys/kernel/pid_max", "utf8"));
  const used = Number(readFileSync("/proc/loadavg", "utf8").split(" ")[3]?.split("/")[1] ?? 0);
  return { available: capacity - used, capacity };
}

/** Usage by Pod UID. Directories are walked only for Pods with storage limits, or for all Pods with `everyPod`. */
export async function podUsage(options: {
  runtime: ContainerRuntime;
  pods: readonly NodePod[];
  podDir: (uid: string) => string;
  logDir: (pod: NodePod) => string;
  everyPod: boolean;
  processes: (uid: string) => Promise<number>;
  quotas?: CountedFolders | undefined;
  measure: MeasureTree;
}): Promise<Map<string, PodUsage>> {
  const stats = await options.runtime.listContainerStats();
  const usage = new Map<string, PodUsage>();
  for (const pod of options.pods) {
    const { uid } = pod.metadata;
    const walks = options.everyPod || hasStorageLimit(pod);
    let inodes = 0;
    let diskBytes = 0;
    const layers = { bytes: 0, inodes: 0 };
    const look = async (path: string, quotas?: CountedFolders): Promise<number> => {
      if (!walks) return 0;
      const found = await options.measure(path, quotas);
      inodes += found.inodes;
      diskBytes += found.bytes;
      return found.bytes;
    };
    const containers = [];
    for (const { name } of pod.spec.containers) {
      const own = stats.filter(
        (stat) =>
          stat.attributes?.labels[labelNames.podUid] === uid && stat.attributes?.labels[labelNames.containerName] === name,
      );
      const sum = (of: (stat: (typeof own)[number]) => number | undefined): number =>
        own.reduce((total, stat) => total + (of(stat) ?? 0), 0);
      const layer = sum(({ writableLayer }) => writableLayer?.usedBytes?.value);
      layers.bytes += layer;
      layers.inodes += sum(({ writableLayer }) => writableLayer?.inodesUsed?.value);
      const logs = await look(join(options.logDir(pod), name));
      const memoryBytes = sum(({ memory }) => memory?.workingSetBytes?.value);
      containers.push({ name, memoryBytes, diskBytes: layer + logs, layerBytes: layer });
    }
    const emptyDirs = new Map<string, number>();
    for (const { name, emptyDir, configMap, gitRepo } of pod.spec.volumes ?? []) {
      if (!walks) break;
      const dir = (plugin: string): string => join(options.podDir(uid), "volumes", plugin, name);
      if (configMap !== undefined) await look(dir("kubernetes.io~configmap"));
      else if (gitRepo !== undefined) await look(dir("kubernetes.io~git-repo"));
      else if (emptyDir !== undefined && emptyDir.medium !== "Memory") {
        emptyDirs.set(name, await look(dir("kubernetes.io~empty-dir"), options.quotas));
      } else if (emptyDir?.sizeLimit !== undefined) {
        // What is in memory counts for the volume's own limit, not for that of the disk.
        emptyDirs.set(name, (await options.measure(dir("kubernetes.io~empty-dir"))).bytes);
      }
    }
    // Files that the agent creates for containers: termination messages and /etc/hosts.
    for (const name of ["containers", "etc-hosts"]) await look(join(options.podDir(uid), name));
    usage.set(uid, {
      memoryBytes: containers.reduce((total, container) => total + container.memoryBytes, 0),
      diskBytes: diskBytes + layers.bytes,
      inodes: inodes + layers.inodes,
      layers,
      processes: await options.processes(uid),
      containers,
      emptyDirs,
    });
  }
  return usage;
}

/**
 * Disk usage of a file or directory tree.
 * @param quotas queried first; when it knows the directory, the tree is not walked
 */
export async function usageBelow(path: string, quotas?: CountedFolders): Promise<TreeUsage> {
  return (await quotas?.usage(path)) ?? treeUsage(path);
}

/** Measures a tree, or returns what was measured of it before; see {@link newTreeUsages}. */
type MeasureTree = typeof usageBelow;

/** Trees that are measured at the same time. */
const mostAtOnce = 4;

/**
 * Usage of trees for a caller that must not wait for huge ones: the measurements that a pass has begun go on after `waitMs`, until when
 * the trees count with their last usage. A tree that a pass leaves out is forgotten.
 */
export function newTreeUsages(options: { clock: Clock; log: Logger; waitMs: number; measure?: MeasureTree }): {
  pass<T>(work: (measure: MeasureTree) => Promise<T>): Promise<T>;
} {
  const { clock, log, waitMs, measure = usageBelow } = options;
  const known = new Map<string, { usage: TreeUsage; running?: Promise<TreeUsage> | undefined }>();
  const waiting: (() => void)[] = [];
  let running = 0;

  async function update(path: string, quotas: CountedFolders | undefined, tree: { usage: TreeUsage }): Promise<TreeUsage> {
    if (running >= mostAtOnce) await new Promise<void>((resolve) => waiting.push(resolve));
    else running++;
    try {
      tree.usage = await measure(path, quotas);
    } catch (err) {
      log.error("cannot measure the disk usage", err, { path });
    } finally {
      const next = waiting.shift();
      if (next === undefined) running--;
      else next();
    }
    return tree.usage;
  }

  return {
    async pass(work) {
      const asked = new Set<string>();
      const over = Promise.withResolvers<undefined>();
      const timer = clock.after(waitMs, () => over.resolve(undefined));
      try {
        return await work(async (path, quotas) => {
          asked.add(path);
          const tree = known.getOrInsertComputed(path, () => ({ usage: { bytes: 0, inodes: 0 } }));
          tree.running ??= update(path, quotas, tree).finally(() => (tree.running = undefined));
          return (await Promise.race([tree.running, over.promise])) ?? tree.usage;
        });
      } finally {
        timer.cancel();
        for (const path of known.keys()) if (!asked.has(path)) known.delete(path);
      }
    },
  };
}
