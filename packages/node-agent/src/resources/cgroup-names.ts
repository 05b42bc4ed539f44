import { basename, join } from "node:path";

/** A cgroup as the list of names from the root: `["kubepods", "burstable", "pod1234-abcd"]`. */
export type CgroupName = readonly string[];

/** Mapping between cgroup names and paths below the root of each controller, for one cgroup driver. */
export interface CgroupNaming {
  pathOf(name: CgroupName): string;
  /** The inverse of `pathOf`, for paths taken from the configuration. */
  parse(path: string): CgroupName;
  /** The last name component of a directory. */
  lastOf(folder: string): string;
}

const suffix = ".slice";

/**
 * Appends `parts` to `base`.
 * @throws Error when a part contains `/` or `_`, which the systemd driver could not map back
 */
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
 * systemd encodes the position of a slice in its name, with `-` between the components:
 * `/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1234_abcd.slice`. A `-` inside a component becomes `_`.
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

/** The unit of a slice path and its parent unit. @param path not `/` */
export function unitOf(path: string): { unit: string; parent: string } {
  return { unit: basename(path), parent: basename(join(path, "..")) || "-.slice" };
}
