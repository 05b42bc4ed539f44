import { existsSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type ClusterProcess, identify } from "./cluster-processes.ts";

/** Folders of a cgroup and its descendants, deepest first, in all cgroup v1 hierarchies or the v2 hierarchy. */
export function cgroupFolders(name: string, mountPoint = "/sys/fs/cgroup"): string[] {
  const below = (folder: string): string[] => [
    ...entriesOf(folder)
      .filter((entry) => entry.isDirectory())
      .flatMap((entry) => below(join(folder, entry.name))),
    folder,
  ];
  const hierarchies = [
    mountPoint,
    ...entriesOf(mountPoint).flatMap((entry) => (entry.isDirectory() ? [join(mountPoint, entry.name)] : [])),
  ];
  return hierarchies
    .map((root) => join(root, name))
    .filter((folder) => existsSync(folder))
    .flatMap(below);
}

/** @param folders cgroups; one that was removed meanwhile has no processes */
export function processesIn(folders: readonly string[]): ClusterProcess[] {
  const pids = folders.flatMap((folder) => {
    try {
      return readFileSync(join(folder, "cgroup.procs"), "utf8").split("\n").filter(Boolean).map(Number);
    } catch {
      return []; // removed concurrently
    }
  });
  return [...new Set(pids)].flatMap((pid) => identify(pid));
}

/** Frozen processes receive signals only after thawing. */
export function thaw(folders: readonly string[]): void {
  for (const folder of folders) {
    write(join(folder, "freezer.state"), "THAWED");
    write(join(folder, "cgroup.freeze"), "0");
  }
}

/** Removes empty cgroups; those with processes remain. */
export function removeCgroups(folders: readonly string[]): void {
  for (const folder of folders) {
    try {
      rmdirSync(folder);
    } catch {
      // it still contains a process
    }
  }
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

function write(file: string, text: string): void {
  try {
    if (existsSync(file)) writeFileSync(file, text);
  } catch {
    // a root cgroup cannot be frozen
  }
}
