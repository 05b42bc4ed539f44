import { existsSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type ClusterProcess, identify } from "./cluster-processes.ts";

const mountPoint = "/sys/fs/cgroup";

/** The folders of a cgroup and of those below it, deepest first, in every hierarchy of cgroup v1 or in that of v2. */
export function cgroupFolders(name: string): string[] {
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

export function processesIn(folders: readonly string[]): ClusterProcess[] {
  const pids = folders.flatMap((folder) => {
    try {
      return readFileSync(join(folder, "cgroup.procs"), "utf8").split("\n").filter(Boolean).map(Number);
    } catch {
      return []; // removed meanwhile
    }
  });
  return [...new Set(pids)].flatMap((pid) => identify(pid));
}

/** A frozen process gets its signals when it is thawed. */
export function thaw(folders: readonly string[]): void {
  for (const folder of folders) {
    write(join(folder, "freezer.state"), "THAWED");
    write(join(folder, "cgroup.freeze"), "0");
  }
}

/** Only empty ones can be removed; those that are not stay. */
export function removeCgroups(folders: readonly string[]): void {
  for (const folder of folders) {
    try {
      rmdirSync(folder);
    } catch {
      // a process is still in it
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
