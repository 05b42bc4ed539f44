import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { Systemd, UnitProperty } from "../dbus/systemd.ts";
import { unitOf } from "./cgroup-names.ts";
import type { CgroupTree } from "./cgroup-tree.ts";
import { limitProperties, newSliceProperties } from "./slice-properties.ts";

interface SystemdTreeOptions {
  systemd: Systemd;
  /** The same cgroups through cgroupfs: for controllers that systemd does not manage, and for exact values. */
  files: CgroupTree;
  cfsPeriodUs: number;
  log: Logger;
}

/**
 * Cgroups as systemd slices. systemd owns the hierarchy: it would move or remove cgroups that are not units.
 * Properties that systemd does not support are written to cgroupfs, as runc does.
 * Source: runc libcontainer/cgroups/systemd/v1.go, v2.go
 */
export function newSystemdTree({ systemd, files, cfsPeriodUs, log }: SystemdTreeOptions): CgroupTree {
  const slice = { unified: files.unified, cfsPeriodUs };
  /** Slice path → property names → values that were last sent. */
  const written = new Map<string, Map<string, string>>();

  /** @returns false when systemd rejected the properties; the reason is logged */
  async function setLimits(path: string, properties: readonly UnitProperty[]): Promise<boolean> {
    const names = properties.map(([name]) => name).join(" ");
    const values = properties.map(([, { value }]) => String(value)).join(" ");
    if (properties.length === 0 || written.get(path)?.get(names) === values) return true;
    const { unit } = unitOf(path);
    try {
      await systemd.setUnitProperties(unit, properties);
      written.set(path, (written.get(path) ?? new Map<string, string>()).set(names, values));
      return true;
    } catch (err) {
      log.warn("cannot set the limits of a slice", { unit, reason: messageOf(err) });
      return false;
    }
  }

  return {
    unified: files.unified,
    exists: (path) => files.exists(path),
    children: (path) => files.children(path),
    memoryUsageBytes: (path) => files.memoryUsageBytes(path),
    memory: (path) => files.memory(path),
    taskCount: (path) => files.taskCount(path),
    addProcess: (path, pid) => files.addProcess(path, pid),
    processesIn: (path) => files.processesIn(path),
    isPopulated: (path) => files.isPopulated(path),
    async make(path) {
      written.delete(path);
      await systemd.startTransientUnit(unitOf(path).unit, newSliceProperties(path, slice));
      await files.make(path);
    },
    async limit(path, limits) {
      const isSet = await setLimits(path, limitProperties(limits, slice));
      return (await files.limit(path, limits)) && isSet;
    },
    async remove(path) {
      // Stopping a slice kills the processes in it.
      if (await files.isPopulated(path)) return false;
      await systemd.stopUnit(unitOf(path).unit);
      written.delete(path);
      return files.remove(path);
    },
  };
}
