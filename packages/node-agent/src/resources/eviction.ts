import { Quantity } from "@coxswain/apimachinery/objects/meta/quantity";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { isCriticalPod, type NodePod } from "../pod/pod.ts";
import { podResources, quantityOf } from "../pod/pod-resources.ts";
import type { PodVerdict } from "../pod/pod-verdict.ts";
import {
  isMemory,
  metThresholds,
  type Observations,
  type Pressure,
  pressureOf,
  resourceOf,
  type Signal,
  type Threshold,
} from "./eviction-thresholds.ts";

/** Usage of evictable resources by one Pod. */
export interface PodUsage {
  memoryBytes: number;
  diskBytes: number;
  /** Files and directories. */
  inodes: number;
  /** The part of `diskBytes` and `inodes` in the containers' writable layers, on the file system of images. */
  layers: { bytes: number; inodes: number };
  processes: number;
  /** Usage by container, for the eviction message. */
  containers: readonly { name: string; memoryBytes: number; diskBytes: number; layerBytes: number }[];
  /** Size in bytes by emptyDir volume. */
  emptyDirs: ReadonlyMap<string, number>;
}

/**
 * Pure: Pods in eviction order. Pods that exceed their requests come first, then lower priority, then the larger excess
 * over the request. There are no requests for PIDs, so that only priority and the number of processes count for them. What a
 * Pod of unknown usage exceeds counts as more than what any other does; except for PIDs it comes before all others.
 * @param hasImageFs whether images and writable layers have a file system of their own, so that only usage of that of the signal counts
 * Source: pkg/kubelet/eviction/helpers.go rankMemoryPressure, rankPIDPressure, rankDiskPressureFunc
 */
export function rankPods(
  pods: readonly NodePod[],
  usage: ReadonlyMap<string, PodUsage>,
  signal: Signal,
  hasImageFs = false,
): NodePod[] {
  const resource = resourceOf(signal);
  const usedBy = (pod: NodePod): number => {
    const used = usage.get(pod.metadata.uid);
    if (used === undefined) return Number.POSITIVE_INFINITY;
    if (resource === "memory") return used.memoryBytes;
    if (resource === "pids") return used.processes;
    const { bytes, inodes } = !hasImageFs ? onDisk(used) : isOfImages(signal) ? used.layers : outsideLayers(used);
    return resource === "inodes" ? inodes : bytes;
  };
  const excess = (pod: NodePod): number => usedBy(pod) - (podResources(pod, "requests").get(resource)?.value() ?? 0);
  return pods
    .filter((pod) => !isCriticalPod(pod))
    .map((pod) => ({ pod, excess: excess(pod) }))
    .sort((a, b) => {
      const exceeds = rankOf(b.excess) - rankOf(a.excess);
      if (resource !== "pids" && exceeds !== 0) return exceeds;
      const byPriority = (a.pod.spec.priority ?? 0) - (b.pod.spec.priority ?? 0);
      return byPriority || (a.excess === b.excess ? 0 : b.excess - a.excess);
    })
    .map(({ pod }) => pod);
}

/** 2: unknown, 1: over the request, 0: within it. */
const rankOf = (excess: number): number => (excess === Number.POSITIVE_INFINITY ? 2 : Number(excess > 0));

const isOfImages = (signal: Signal): boolean => signal === "imagefs.available" || signal === "imagefs.inodesFree";
const onDisk = ({ diskBytes: bytes, inodes }: PodUsage): PodUsage["layers"] => ({ bytes, inodes });
const outsideLayers = ({ diskBytes, inodes, layers }: PodUsage): PodUsage["layers"] => ({
  bytes: diskBytes - layers.bytes,
  inodes: inodes - layers.inodes,
});

/**
 * Pure: reason and message of the evicted Pod's status, and the annotations of the event.
 * Source: pkg/kubelet/eviction/helpers.go evictionMessage
 */
export function evictionVerdict(pod: NodePod, signal: Signal, used: PodUsage | undefined): PodVerdict {
  const resource = resourceOf(signal);
  let message = `The node was low on resource: ${resource}. `;
  const offending: { name: string; usage: string }[] = [];
  const isMeasured = resource === "memory" || resource === "ephemeral-storage";
  for (const { name, memoryBytes, diskBytes } of isMeasured ? (used?.containers ?? []) : []) {
    const container = pod.spec.containers.find((candidate) => candidate.name === name);
    const bytes = Quantity.fromValue(resource === "memory" ? memoryBytes : diskBytes, "BinarySI");
    const request = quantityOf(container?.resources?.requests, resource);
    if (bytes.cmp(request) <= 0) continue;
    message += `Container ${name} was using ${bytes}, which exceeds its request of ${request}. `;
    offending.push({ name, usage: bytes.toString() });
  }
  const annotations = {
    offending_containers: offending.map(({ name }) => name).join(","),
    offending_containers_usage: offending.map(({ usage }) => usage).join(","),
    starved_resource: resource,
  };
  return { reason: "Evicted", message, annotations };
}

/** The local storage limit that a Pod exceeded, as a label value of the metric `kubelet_evictions`. */
type StorageLimit = "emptydirfs.limit" | "ephemeralpodfs.limit" | "ephemeralcontainerfs.limit";

/**
 * Pure: the first local storage limit that the Pod exceeds. Writable layers in a file system of their own (`hasImageFs`) do not count.
 * Source: eviction_manager.go localStorageEviction
 */
export function exceededStorage(
  pod: NodePod,
  used: PodUsage,
  hasImageFs = false,
): { limit: StorageLimit; message: string } | undefined {
  for (const volume of pod.spec.volumes ?? []) {
    const limit = volume.emptyDir?.sizeLimit;
    const size = used.emptyDirs.get(volume.name);
    if (limit === undefined || size === undefined) continue;
    const quantity = Quantity.tryParse(String(limit));
    if (quantity !== undefined && quantity.sign > 0 && size > quantity.value()) {
      const message = `Usage of EmptyDir volume ${JSON.stringify(volume.name)} exceeds the limit ${JSON.stringify(quantity.toString())}. `;
      return { limit: "emptydirfs.limit", message };
    }
  }
  const ofPod = podResources(pod, "limits").get("ephemeral-storage");
  const { bytes } = hasImageFs ? outsideLayers(used) : onDisk(used);
  if (ofPod !== undefined && bytes > ofPod.value()) {
    const message = `Pod ephemeral local storage usage exceeds the total limit of containers ${ofPod}. `;
    return { limit: "ephemeralpodfs.limit", message };
  }
  for (const { name, diskBytes, layerBytes } of used.containers) {
    const container = pod.spec.containers.find((candidate) => candidate.name === name);
    const own = quantityOf(container?.resources?.limits, "ephemeral-storage");
    if (!own.isZero && diskBytes - (hasImageFs ? layerBytes : 0) > own.value()) {
      const message = `Container ${name} exceeded its local ephemeral storage limit ${JSON.stringify(own.toString())}. `;
      return { limit: "ephemeralcontainerfs.limit", message };
    }
  }
  return undefined;
}

export interface EvictionOptions {
  clock: Clock;
  log: Logger;
  thresholds: readonly Threshold[];
  transitionMs: number;
  /** Upper bound of the grace period for soft thresholds; a negative value means the Pod's own grace period. */
  maxGraceSeconds: number;
  observe: () => Promise<Observations>;
  /** Whether images and writable layers have a file system of their own; called after `observe`. */
  hasImageFs?: () => boolean;
  usage: () => Promise<ReadonlyMap<string, PodUsage>>;
  activePods: () => readonly NodePod[];
  /** Frees disk space without ending Pods: removes unused images and exited containers. */
  reclaimDisk: () => Promise<void>;
  /** @param signal the eviction signal, or the local storage limit that the Pod exceeded */
  evict: (pod: NodePod, verdict: PodVerdict, graceSeconds: number, signal: Signal | StorageLimit) => Promise<void>;
  /** Called for each threshold that is due, before a Pod is evicted. @param ageMs age of the observations */
  onDue: (signal: Signal, ageMs: number) => void;
  reportNodeEvent: (type: "Warning", reason: string, message: string) => void;
  onPressureChange: (pressure: Pressure) => void;
}

export interface Eviction {
  /** Runs one pass. Node pressure evicts at most one Pod; exceeded local storage limits evict every offending Pod. */
  check(): Promise<void>;
  readonly pressure: Pressure;
}

/** Keeps the node from running out of memory, disk or pids. Source: pkg/kubelet/eviction/eviction_manager.go */
export function newEviction(options: EvictionOptions): Eviction {
  const { clock, log, hasImageFs = () => false } = options;
  /** Thresholds that were met for their grace period in the last pass. */
  let driving = new Set<Threshold>();
  const since = new Map<Threshold, number>();
  const lastSeen: Record<keyof Pressure, number> = {
    memory: Number.NEGATIVE_INFINITY,
    disk: Number.NEGATIVE_INFINITY,
    pid: Number.NEGATIVE_INFINITY,
  };
  let pressure: Pressure = { memory: false, disk: false, pid: false };

  /** Updates the node's pressure conditions at once. @returns thresholds that have been met for their grace period */
  function note(met: ReadonlySet<Threshold>, now: number): Threshold[] {
    for (const threshold of since.keys()) if (!met.has(threshold)) since.delete(threshold);
    for (const threshold of met) {
      since.getOrInsert(threshold, now);
      lastSeen[pressureOf(threshold.signal)] = now;
    }
    const has = (kind: keyof Pressure): boolean => now - lastSeen[kind] < options.transitionMs || lastSeen[kind] === now;
    const next = { memory: has("memory"), disk: has("disk"), pid: has("pid") };
    const changed = next.memory !== pressure.memory || next.disk !== pressure.disk || next.pid !== pressure.pid;
    pressure = next;
    if (changed) options.onPressureChange(next);
    return [...met].filter((threshold) => now - (since.get(threshold) ?? now) >= threshold.graceMs);
  }

  async function evictForStorage(pods: readonly NodePod[], usage: ReadonlyMap<string, PodUsage>): Promise<boolean> {
    let any = false;
    for (const pod of pods) {
      const used = usage.get(pod.metadata.uid);
      const exceeded = used === undefined || isCriticalPod(pod) ? undefined : exceededStorage(pod, used, hasImageFs());
      if (exceeded === undefined) continue;
      any = true;
      await options.evict(pod, { reason: "Evicted", message: exceeded.message }, 0, exceeded.limit);
    }
    return any;
  }

  return {
    get pressure() {
      return pressure;
    },
    async check() {
      const now = clock.monotonic();
      const pods = options.activePods();
      const limited = pods.some(hasStorageLimit);
      const seen = await options.observe();
      const due = note(new Set(metThresholds(options.thresholds, seen, driving)), now);
      driving = new Set(due);
      if (due.length === 0 && !limited) return;
      const usage = await options.usage();
      if (limited && (await evictForStorage(pods, usage))) return;
      // Memory first: it is exhausted fastest.
      const [worst] = due.sort((a, b) => Number(isMemory(b.signal)) - Number(isMemory(a.signal)));
      if (worst === undefined) return;
      log.warn("Eviction manager: attempting to reclaim", { signal: worst.signal });
      options.reportNodeEvent("Warning", "EvictionThresholdMet", `Attempting to reclaim ${resourceOf(worst.signal)}`);
      // Pods are evicted only for what garbage collection cannot free, which is in the file system of images.
      const isReclaimable = pressureOf(worst.signal) === "disk" && (isOfImages(worst.signal) || !hasImageFs());
      if (isReclaimable && (await freesEnough(options))) return;
      if (pods.length === 0) {
        log.error("Eviction manager: eviction thresholds have been met, but no pods are active to evict");
        return;
      }
      for (const { signal } of due) options.onDue(signal, clock.monotonic() - now);
      const [victim] = rankPods(pods, usage, worst.signal, hasImageFs());
      if (victim === undefined) {
        log.info("Eviction manager: unable to evict any pods from the node");
        return;
      }
      const verdict = evictionVerdict(victim, worst.signal, usage.get(victim.metadata.uid));
      await options.evict(victim, verdict, graceSecondsOf(victim, worst, options.maxGraceSeconds), worst.signal);
    },
  };
}

/** Frees disk space. @returns whether no threshold is met any longer */
async function freesEnough({ log, reclaimDisk, observe, thresholds }: EvictionOptions): Promise<boolean> {
  await reclaimDisk().catch((err) => log.error("Eviction manager: unexpected error when attempting to reclaim", err));
  return metThresholds(thresholds, await observe(), new Set(thresholds)).length === 0;
}

/** Hard thresholds leave the Pod no time. @param maxSeconds see {@link EvictionOptions} */
function graceSecondsOf({ spec }: NodePod, { graceMs }: Threshold, maxSeconds: number): number {
  if (graceMs === 0) return 0;
  const own = spec.terminationGracePeriodSeconds ?? 30;
  return maxSeconds < 0 ? own : Math.min(own, maxSeconds);
}

/** True when the Pod has an emptyDir size limit or a container limit for ephemeral storage. */
export function hasStorageLimit(pod: NodePod): boolean {
  return (
    (pod.spec.volumes ?? []).some((volume) => volume.emptyDir?.sizeLimit !== undefined) ||
    pod.spec.containers.some((container) => container.resources?.limits?.["ephemeral-storage"] !== undefined)
  );
}
