import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { Systemd, UnitProperty } from "../dbus/systemd.ts";
import { unitOf } from "./cgroup-names.ts";
import type { CgroupTree } from "./cgroup-tree.ts";
import { limitProperties, newSliceProperties } from "./slice-properties.ts";

export interface SystemdTreeOptions {
  systemd: Systemd;
  /** The same cgroups as files: for controllers that systemd leaves alone, and exact values. */
  files: CgroupTree;
  cfsPeriodUs: number;
  log: Logger;
}

/**
 * Cgroups that systemd keeps: each is a slice, so that systemd, which has the tree to itself, neither moves nor forgets it.
 * What it does not know of is done in the files, as the runtime does below.
 * Source: runc libcontainer/cgroups/systemd/v1.go, v2.go
 */
export function newSystemdTree({ systemd, files, cfsPeriodUs, log }: SystemdTreeOptions): CgroupTree {
  const slice = { unified: files.unified, cfsPeriodUs };
  /** What each slice was told last, by the names of the properties. */
  const told = new Map<string, Map<string, string>>();

  /** @returns false when systemd refused it; that is in the log */
  async function tell(path: string, properties: readonly UnitProperty[]): Promise<boolean> {
    const names = properties.map(([name]) => name).join(" ");
    const values = properties.map(([, { value }]) => String(value)).join(" ");
    if (properties.length === 0 || told.get(path)?.get(names) === values) return true;
    const { unit } = unitOf(path);
    try {
      await systemd.setUnitProperties(unit, properties);
      told.set(path, (told.get(path) ?? new Map<string, string>()).set(names, values));
      return true;
    } catch (err) {
      log.warn("cannot set the limits of a slice", { unit, reason: (err as Error).message });
      return false;
    }
  }

  return {
    ...files,
    async make(path) {
      told.delete(path);
      await systemd.startTransientUnit(unitOf(path).unit, newSliceProperties(path, slice));
      await files.make(path);
    },
    async limit(path, limits) {
      const heard = await tell(path, limitProperties(limits, slice));
      return (await files.limit(path, limits)) && heard;
    },
    async remove(path) {
      // To stop a slice is to stop whatever is in it.
      if (await files.isPopulated(path)) return false;
      await systemd.stopUnit(unitOf(path).unit);
      told.delete(path);
      return files.remove(path);
    },
  };
}
