/** When there is too little of something: what is looked at, from where on it is too little, and what that means for the node. */
import { Quantity } from "@coxswain/apimachinery/meta/quantity";
import { thresholdAmount } from "./allocatable.ts";

export type Signal =
  | "memory.available"
  | "allocatableMemory.available"
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

/**
 * Pure: what is to be free of the node's memory is to be free of what Pods may use of it too, where they are held to
 * that: the kernel would kill before a Pod is evicted. Source: pkg/kubelet/eviction/helpers.go addAllocatableThresholds
 */
export function withAllocatable(thresholds: readonly Threshold[]): Threshold[] {
  const added = thresholds
    .filter(({ signal, graceMs }) => signal === "memory.available" && graceMs === 0)
    .map((threshold): Threshold => ({ ...threshold, signal: "allocatableMemory.available" }));
  return [...thresholds, ...added];
}

export const isMemory = (signal: Signal): boolean => signal === "memory.available" || signal === "allocatableMemory.available";

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

/** What the node is short of. */
export interface Pressure {
  memory: boolean;
  disk: boolean;
  pid: boolean;
}

export function pressureOf(signal: Signal): keyof Pressure {
  if (isMemory(signal)) return "memory";
  return signal === "pid.available" ? "pid" : "disk";
}

/** What is short, as users know it. */
export function resourceOf(signal: Signal): "memory" | "pids" | "inodes" | "ephemeral-storage" {
  if (isMemory(signal)) return "memory";
  if (signal === "pid.available") return "pids";
  return signal.endsWith(".inodesFree") ? "inodes" : "ephemeral-storage";
}
