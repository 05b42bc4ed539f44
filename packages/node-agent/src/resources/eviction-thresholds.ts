/** Eviction signals and thresholds, and the node condition that each signal belongs to. */

import { Quantity } from "@coxswain/apimachinery/objects/meta/quantity";
import { isOneOf } from "@coxswain/apimachinery/process/narrowing/keys";
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
  /** A quantity, or a percentage of the capacity: `10%`. */
  value: string;
  /** Time for which the threshold has to be met before Pods are evicted; 0 for hard thresholds. */
  graceMs: number;
  /** Margin above the threshold that has to be available before the threshold counts as no longer met. */
  minReclaim: string | undefined;
}

/** Available amount and capacity: bytes, inodes or processes, depending on the signal. */
export interface Observation {
  available: number;
  capacity: number;
}
export type Observations = Partial<Record<Signal, Observation>>;

/** The eviction settings of the configuration by signal; grace periods in milliseconds. */
interface EvictionSettings {
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

/**
 * Parses `--eviction-hard`, `--eviction-soft` and related settings. @throws Error that names the invalid setting
 * Source: pkg/kubelet/eviction/helpers.go ParseThresholdConfig
 */
export function parseThresholds(settings: EvictionSettings): Threshold[] {
  const thresholds: Threshold[] = [];
  const add = (list: Readonly<Record<string, string>>, soft: boolean): void => {
    for (const [name, value] of Object.entries(list)) {
      if (!isOneOf(signals, name)) throw new Error(`eviction signal ${name} is not supported`);
      if (value.endsWith("%")) {
        const share = Number(value.slice(0, -1));
        if (!(share >= 0 && share <= 100))
          throw new Error(`eviction percentage threshold ${name} must be >= 0% and <= 100%: ${value}`);
        if (share === 0 || share === 100) continue; // 0% and 100% disable the threshold
      } else if (Quantity.tryParse(value) === undefined) {
        throw new Error(`eviction threshold ${name} is not a quantity: ${value}`);
      }
      const graceMs = settings.softGraceMs[name];
      if (soft && graceMs === undefined)
        throw new Error(`grace period must be specified for the soft eviction threshold ${name}`);
      thresholds.push({
        signal: name,
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
 * Pure: adds `allocatableMemory.available` with the value of the hard threshold for `memory.available`. Without it, the
 * kernel would OOM-kill within the `kubepods` cgroup before a Pod is evicted.
 * Source: pkg/kubelet/eviction/helpers.go addAllocatableThresholds
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

/** Pure: the thresholds that are met; one in `before` stays met until its minimum reclaim is available as well. */
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

/** The node condition that a signal belongs to. */
export function pressureOf(signal: Signal): keyof Pressure {
  if (isMemory(signal)) return "memory";
  return signal === "pid.available" ? "pid" : "disk";
}

/** The resource of a signal, as named in messages and events. */
export function resourceOf(signal: Signal): "memory" | "pids" | "inodes" | "ephemeral-storage" {
  if (isMemory(signal)) return "memory";
  if (signal === "pid.available") return "pids";
  return signal.endsWith(".inodesFree") ? "inodes" : "ephemeral-storage";
}
