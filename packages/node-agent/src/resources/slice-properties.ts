import type { UnitProperty } from "../dbus/systemd.ts";
import { unitOf } from "./cgroup-names.ts";
import type { CgroupLimits } from "./cgroup-tree.ts";
import { cpuWeight } from "./container-resources.ts";

interface SliceOptions {
  /** True for cgroup v2. */
  unified: boolean;
  cfsPeriodUs: number;
}

/**
 * Properties of a new transient slice: its parent, and accounting for every controller, because processes cannot join some
 * controllers later. Source: runc libcontainer/cgroups/systemd/v1.go, v2.go Apply
 */
export function newSliceProperties(path: string, { unified }: SliceOptions): UnitProperty[] {
  const { unit, parent } = unitOf(path);
  return [
    ["Description", { type: "s", value: `libcontainer container ${unit}` }],
    ["Wants", { type: "as", value: [parent] }],
    ...["MemoryAccounting", "CPUAccounting", unified ? "IOAccounting" : "BlockIOAccounting", "TasksAccounting"].map(
      (name): UnitProperty => [name, { type: "b", value: true }],
    ),
    ["DefaultDependencies", { type: "b", value: false }],
  ];
}

/**
 * Limits as systemd unit properties.
 * Source: runc libcontainer/cgroups/systemd genV1ResourcesProperties, genV2ResourcesProperties
 */
export function limitProperties(limits: CgroupLimits, { unified, cfsPeriodUs }: SliceOptions): UnitProperty[] {
  const { shares, quotaUs = 0, memoryBytes = 0, memoryMinBytes, pids = 0 } = limits;
  const properties: [string, number | undefined][] = [
    [unified ? "MemoryMax" : "MemoryLimit", memoryBytes || undefined],
    ["MemoryMin", unified ? memoryMinBytes : undefined],
    [unified ? "CPUWeight" : "CPUShares", unified && shares !== undefined ? cpuWeight(shares) : shares],
    ["CPUQuotaPeriodUSec", quotaUs > 0 ? cfsPeriodUs : undefined],
    ["CPUQuotaPerSecUSec", quotaUs > 0 ? quotaPerSecondUs(quotaUs, cfsPeriodUs) : undefined],
    ["TasksMax", pids || undefined],
  ];
  return properties.flatMap(([name, value]): UnitProperty[] =>
    value === undefined ? [] : [[name, { type: "t", value: BigInt(value) }]],
  );
}

/** systemd's resolution is 1% of a CPU: round up, so that Pods get at least what they were promised. */
function quotaPerSecondUs(quotaUs: number, periodUs: number): number {
  return Math.ceil(Math.trunc((quotaUs * 1_000_000) / periodUs) / 10_000) * 10_000;
}
