import { basename, join } from "node:path";

/** A cgroup by the names from the root to it: `["kubepods", "burstable", "pod1234-abcd"]`. */
export type CgroupName = readonly string[];

/** How a driver writes names of cgroups as paths below the root of each controller. */
export interface CgroupNaming {
  pathOf(name: CgroupName): string;
  /** The name of a path that somebody wrote into the configuration. */
  parse(path: string): CgroupName;
  /** The last part of a folder's name. */
  lastOf(folder: string): string;
}

const suffix = ".slice";

/** @throws Error for parts that could not be told apart again once they are written as a path */
export function cgroupName(base: CgroupName, ...parts: string[]): CgroupName {
  for (const part of parts) {
    if (/[/_]/.test(part)) throw new Error(`invalid character in component [${JSON.stringify(part)}] of CgroupName`);
  }
  return [...base, ...parts];
}

/** `/kubepods/burstable/pod1234-abcd`. Source: pkg/kubelet/cm/cgroup_manager_linux.go */
export const cgroupfsNames: CgroupNaming = {
  pathOf: (name) => join("/", ...name),
  parse: (path) => path.split("/").filter((part) => part !== ""),
  lastOf: (folder) => folder,
};

/**
 * systemd's slices say in their name where they are, with `-` between the parts:
 * `/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1234_abcd.slice`. Parts have `_` for `-`.
 * Source: pkg/kubelet/cm/cgroup_manager_linux.go ToSystemd, ParseSystemdToCgroupName; systemd.slice(5)
 */
export const systemdNames: CgroupNaming = {
  pathOf(name) {
    const parts = name.filter((part) => part !== "").map((part) => part.replaceAll("-", "_"));
    for (const part of parts) if (part.includes("/")) throw new Error(`invalid slice name: ${parts.join("-")}${suffix}`);
    return join("/", ...parts.map((_, i) => `${parts.slice(0, i + 1).join("-")}${suffix}`));
  },
  parse: (path) => sliceParts(basename(path)),
  lastOf: (folder) => sliceParts(folder).at(-1) ?? "",
};

const sliceParts = (folder: string): string[] =>
  (folder.endsWith(suffix) ? folder.slice(0, -suffix.length) : folder)
    .split("-")
    .map((part) => part.replaceAll("_", "-"))
    .filter((part) => part !== "");

/** The unit of a path of slices, and the one above it. @param path not `/` */
export function unitOf(path: string): { unit: string; parent: string } {
  return { unit: basename(path), parent: basename(join(path, "..")) || "-.slice" };
}
