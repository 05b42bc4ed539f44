import type { Clock } from "@coxswain/apimachinery/clock/clock";
import type { Logger } from "@coxswain/apimachinery/logging/logger";
import { Quantity } from "@coxswain/apimachinery/meta/quantity";
import { isCriticalPod, type NodePod } from "../pods/pod.ts";
import type { PodVerdict } from "../pods/pod-runner.ts";
import { thresholdAmount } from "./allocatable.ts";
import { podResources, quantityOf } from "./pod-resources.ts";

export type Signal =
  | "memory.available"
  | "nodefs.available"
  | "nodefs.inodesFree"
  | "imagefs.available"
  | "imagefs.inodesFree"
  | "pid.available";

export interface Threshold {
  signal: Signal;
  /** An amount, or a share of the whole: `10%`. */
  value: string;
  /** How long it has to be met before a Pod goes; 0 for a hard one. */
  graceMs: number;
  /** So much more than the threshold has to be free before it counts as no longer met. */
  minReclaim: string | undefined;
}

export interface Observation {
  available: number;
  capacity: number;
}
export type Observations = Partial<Record<Signal, Observation>>;

/** What a Pod uses of what can run out. */
export interface PodUsage {
  memoryBytes: number;
  diskBytes: number;
  /** By container, for the message. */
  containers: readonly { name: string; memoryBytes: number; diskBytes: number }[];
  /** By emptyDir volume. */
  emptyDirs: ReadonlyMap<string, number>;
}

export interface EvictionSettings {
  hard: Readonly<Record<string, string>>;
  soft: Readonly<Record<string, string>>;
  softGraceMs: Readonly<Record<string, number>>;
  minReclaim: Readonly<Record<string, string>>;
}

const signals: readonly Signal[] = [
  "memory.available",
  "nodefs.available",
  "nodefs.inodesFree",
  "imagefs.available",
  "imagefs.inodesFree",
  "pid.available",
];

/** @throws Error that names what cannot be read. Source: pkg/kubelet/eviction/helpers.go ParseThresholdConfig */
export function parseThresholds(settings: EvictionSettings): Threshold[] {
  const thresholds: Threshold[] = [];
  const add = (list: Readonly<Record<string, string>>, soft: boolean): void => {
    for (const [name, value] of Object.entries(list)) {
      if (!signals.includes(name as Signal)) throw new Error(`eviction signal ${name} is not supported`);
      if (value.endsWith("%")) {
        const share = Number(value.slice(0, -1));
        if (!(share >= 0 && share <= 100))
          throw new Error(`eviction percentage threshold ${name} must be >= 0% and <= 100%: ${value}`);
        if (share === 0 || share === 100) continue; // both turn it off
      } else if (Quantity.tryParse(value) === undefined) {
        throw new Error(`eviction threshold ${name} is not a quantity: ${value}`);
      }
      const graceMs = settings.softGraceMs[name];
      if (soft && graceMs === undefined)
        throw new Error(`grace period must be specified for the soft eviction threshold ${name}`);
      thresholds.push({
        signal: name as Signal,
        value,
        graceMs: soft ? (graceMs ?? 0) : 0,
        minReclaim: settings.minReclaim[name],
      });
    }
  };
  add(settings.hard, false);
  add(settings.soft, true);
  return thresholds;
}

function amountOf(value: string, capacity: number): number {
  return thresholdAmount(value, Quantity.fromValue(Math.trunc(capacity), "BinarySI")).value();
}

/** Pure: the thresholds that are met; one that was met before stays so until its least reclaim is free too. */
export function metThresholds(thresholds: readonly Threshold[], seen: Observations, before: ReadonlySet<Threshold>): Threshold[] {
  return thresholds.filter((threshold) => {
    const observed = seen[threshold.signal];
    if (observed === undefined) return false;
    let limit = amountOf(threshold.value, observed.capacity);
    if (before.has(threshold) && threshold.minReclaim !== undefined) limit += amountOf(threshold.minReclaim, observed.capacity);
    return observed.available < limit;
  });
}

export interface Pressure {
  memory: boolean;
  disk: boolean;
  pid: boolean;
}

function pressureOf(signal: Signal): keyof Pressure {
  if (signal === "memory.available") return "memory";
  return signal === "pid.available" ? "pid" : "disk";
}

/**
 * Pure: which Pod goes first: one that uses more than it asked for, then one of lower priority, then the one that is
 * further above what it asked for. Source: pkg/kubelet/eviction/helpers.go rankMemoryPressure, rankDiskPressureFunc
 */
export function rankPods(pods: readonly NodePod[], usage: ReadonlyMap<string, PodUsage>, pressure: keyof Pressure): NodePod[] {
  const excess = (pod: NodePod): number => {
    const used = usage.get(pod.metadata.uid);
    const requests = podResources(pod, "requests");
    if (pressure === "disk") return (used?.diskBytes ?? 0) - (requests.get("ephemeral-storage")?.value() ?? 0);
    return (used?.memoryBytes ?? 0) - (requests.get("memory")?.value() ?? 0);
  };
  return pods
    .filter((pod) => !isCriticalPod(pod))
    .map((pod) => ({ pod, excess: excess(pod) }))
    .sort((a, b) => {
      const exceeds = Number(b.excess > 0) - Number(a.excess > 0);
      if (pressure !== "pid" && exceeds !== 0) return exceeds;
      const priority = (a.pod.spec.priority ?? 0) - (b.pod.spec.priority ?? 0);
      return priority !== 0 || pressure === "pid" ? priority : b.excess - a.excess;
    })
    .map(({ pod }) => pod);
}

/** Pure: what the Pod is told. Source: pkg/kubelet/eviction/helpers.go evictionMessage */
export function evictionMessage(pod: NodePod, signal: Signal, used: PodUsage | undefined): string {
  const resource =
    pressureOf(signal) === "memory"
      ? "memory"
      : pressureOf(signal) === "pid"
        ? "pids"
        : signal.includes("inodes")
          ? "inodes"
          : "ephemeral-storage";
  let message = `The node was low on resource: ${resource}. `;
  if (resource !== "memory" && resource !== "ephemeral-storage") return message;
  for (const { name, memoryBytes, diskBytes } of used?.containers ?? []) {
    const container = pod.spec.containers.find((candidate) => candidate.name === name);
    const bytes = resource === "memory" ? memoryBytes : diskBytes;
    const request = quantityOf(container?.resources?.requests, resource);
    if (bytes > request.value())
      message += `Container ${name} was using ${Math.trunc(bytes / 1024)}Ki, which exceeds its request of ${request.toString()}. `;
  }
  return message;
}

/** Pure: a Pod that fills more of the node's disk than it may. Source: eviction_manager.go localStorageEviction */
export function exceededStorage(pod: NodePod, used: PodUsage): string | undefined {
  for (const volume of pod.spec.volumes ?? []) {
    const limit = volume.emptyDir?.sizeLimit;
    const size = used.emptyDirs.get(volume.name);
    if (limit === undefined || size === undefined || volume.emptyDir?.medium === "Memory") continue;
    const quantity = Quantity.tryParse(String(limit));
    if (quantity !== undefined && quantity.sign > 0 && size > quantity.value()) {
      return `Usage of EmptyDir volume ${JSON.stringify(volume.name)} exceeds the limit ${JSON.stringify(quantity.toString())}. `;
    }
  }
  const limit = podResources(pod, "limits").get("ephemeral-storage");
  const limited = pod.spec.containers.every((container) => container.resources?.limits?.["ephemeral-storage"] !== undefined);
  if (limit !== undefined && limited && used.diskBytes > limit.value()) {
    return `Pod ephemeral local storage usage exceeds the total limit of containers ${limit.toString()}. `;
  }
  for (const { name, diskBytes } of used.containers) {
    const own = pod.spec.containers.find((candidate) => candidate.name === name)?.resources?.limits?.["ephemeral-storage"];
    if (own !== undefined && diskBytes > quantityOf({ own }, "own").value()) {
      return `Container ${name} exceeded its local ephemeral storage limit ${JSON.stringify(String(own))}. `;
    }
  }
  return undefined;
}

export interface EvictionOptions {
  clock: Clock;
  log: Logger;
  thresholds: readonly Threshold[];
  transitionMs: number;
  /** For soft thresholds; below zero the Pod's own time holds. */
  maxGraceSeconds: number;
  observe: () => Promise<Observations>;
  usage: () => Promise<ReadonlyMap<string, PodUsage>>;
  activePods: () => readonly NodePod[];
  /** Frees disk without ending anything: unused images, ended containers. */
  reclaimDisk: () => Promise<void>;
  /** @param signal what was short; undefined when the Pod took more than it may itself */
  evict: (pod: NodePod, verdict: PodVerdict, graceSeconds: number, signal?: Signal) => Promise<void>;
  onPressureChange: (pressure: Pressure) => void;
}

export interface Eviction {
  /** Looks once, and ends one Pod at most. */
  check(): Promise<void>;
  readonly pressure: Pressure;
}

/** Keeps the node from running out of memory, disk or pids. Source: pkg/kubelet/eviction/eviction_manager.go */
export function newEviction(options: EvictionOptions): Eviction {
  const { clock, log } = options;
  let met = new Set<Threshold>();
  const since = new Map<Threshold, number>();
  const lastSeen: Record<keyof Pressure, number> = {
    memory: Number.NEGATIVE_INFINITY,
    disk: Number.NEGATIVE_INFINITY,
    pid: Number.NEGATIVE_INFINITY,
  };
  let pressure: Pressure = { memory: false, disk: false, pid: false };

  function note(now: number): void {
    for (const threshold of since.keys()) if (!met.has(threshold)) since.delete(threshold);
    for (const threshold of met) {
      if (!since.has(threshold)) since.set(threshold, now);
      if (now - (since.get(threshold) ?? now) >= threshold.graceMs) lastSeen[pressureOf(threshold.signal)] = now;
    }
    const has = (kind: keyof Pressure): boolean => now - lastSeen[kind] < options.transitionMs || lastSeen[kind] === now;
    const next = { memory: has("memory"), disk: has("disk"), pid: has("pid") };
    const changed = next.memory !== pressure.memory || next.disk !== pressure.disk || next.pid !== pressure.pid;
    pressure = next;
    if (changed) options.onPressureChange(next);
  }

  async function evictForStorage(pods: readonly NodePod[], usage: ReadonlyMap<string, PodUsage>): Promise<boolean> {
    let any = false;
    for (const pod of pods) {
      const used = usage.get(pod.metadata.uid);
      const message = used === undefined || isCriticalPod(pod) ? undefined : exceededStorage(pod, used);
      if (message === undefined) continue;
      any = true;
      await options.evict(pod, { reason: "Evicted", message }, 0);
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
      met = new Set(metThresholds(options.thresholds, seen, met));
      note(now);
      const due = [...met].filter((threshold) => now - (since.get(threshold) ?? now) >= threshold.graceMs);
      if (due.length === 0 && !limited) return;
      const usage = await options.usage();
      if (limited && (await evictForStorage(pods, usage))) return;
      // Memory first: it runs out the fastest.
      const [worst] = due.sort((a, b) => Number(b.signal === "memory.available") - Number(a.signal === "memory.available"));
      if (worst === undefined) return;
      log.warn("Eviction manager: attempting to reclaim", { signal: worst.signal });
      if (pressureOf(worst.signal) === "disk") {
        await options.reclaimDisk();
        const after = await options.observe();
        if (metThresholds([worst], after, new Set([worst])).length === 0) return;
      }
      const [victim] = rankPods(pods, usage, pressureOf(worst.signal));
      if (victim === undefined) {
        log.error("Eviction manager: eviction thresholds have been met, but no pods are active to evict");
        return;
      }
      const own = victim.spec.terminationGracePeriodSeconds ?? 30;
      const grace = worst.graceMs === 0 ? 0 : options.maxGraceSeconds < 0 ? own : Math.min(own, options.maxGraceSeconds);
      const message = evictionMessage(victim, worst.signal, usage.get(victim.metadata.uid));
      await options.evict(victim, { reason: "Evicted", message }, grace, worst.signal);
    },
  };
}

export function hasStorageLimit(pod: NodePod): boolean {
  return (
    (pod.spec.volumes ?? []).some((volume) => volume.emptyDir?.sizeLimit !== undefined && volume.emptyDir.medium !== "Memory") ||
    pod.spec.containers.some((container) => container.resources?.limits?.["ephemeral-storage"] !== undefined)
  );
}
