import { readdirSync, readFileSync, statSync } from "node:fs";
import { readdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { makeFolder } from "@coxswain/apimachinery/process/files/make-folder";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { errorCode } from "@coxswain/apimachinery/process/narrowing/error-code";
import { cpuWeight } from "./container-resources.ts";

interface CgroupTreeOptions {
  cfsPeriodUs: number;
  log: Logger;
  /** Where the controllers are mounted; default `/sys/fs/cgroup`. */
  mountPoint?: string | undefined;
  /** With the systemd driver: `make` skips the hierarchies that systemd manages itself. `remove` covers them. */
  besideSystemd?: boolean;
}

/** Zero and absent mean no limit. */
export interface CgroupLimits {
  shares?: number;
  quotaUs?: number;
  memoryBytes?: number;
  /** `memory.min`, cgroup v2 only: memory that is never reclaimed. Zero resets it. */
  memoryMinBytes?: number | undefined;
  pids?: number;
}

/** Cgroups by path from the root; every operation applies to all controllers. */
export interface CgroupTree {
  /** True for cgroup v2: one hierarchy for all controllers. */
  unified: boolean;
  make(path: string): Promise<void>;
  /** False also for a cgroup that cannot be accessed. Source: libcontainer cgroups.PathExists */
  exists(path: string): Promise<boolean>;
  children(path: string): Promise<string[]>;
  /** @returns false when the kernel rejected at least one limit; the reason is logged */
  limit(path: string, limits: CgroupLimits): Promise<boolean>;
  memoryUsageBytes(path: string): Promise<number>;
  /** The memory limit (0 for none) and the working set: usage without inactive page cache. */
  memory(path: string): Promise<{ limitBytes: number; workingSetBytes: number }>;
  /** Processes and threads in this cgroup and its descendants; 0 when the pids controller is not available. */
  taskCount(path: string): Promise<number>;
  /** Moves a process with all its threads. */
  addProcess(path: string, pid: number): Promise<void>;
  processesIn(path: string): Promise<number[]>;
  /** True while this cgroup or a descendant has processes. */
  isPopulated(path: string): Promise<boolean>;
  /** Removes a cgroup and its descendants; false while processes are left. */
  remove(path: string): Promise<boolean>;
}

/** Hierarchies without controllers, in which systemd tracks the processes of its units. */
const systemdTrees = ["systemd", "unified"];
const controllersWithLimits = ["cpu", "memory", "pids"] as const;

/**
 * Cgroupfs: v1 (one hierarchy per controller) or v2 (unified). What is looked up every few seconds is read synchronously: the kernel
 * has it in memory, and a trip to another thread takes ten times as long.
 * Source: pkg/kubelet/cm/cgroup_manager_linux.go
 */
export async function openCgroupTree(options: CgroupTreeOptions): Promise<CgroupTree> {
  return new FileCgroupTree(options, controllerTrees(options.mountPoint ?? "/sys/fs/cgroup"));
}

/** Where one controller's cgroups are. */
interface Hierarchy {
  /** Empty in the unified hierarchy of v2. */
  readonly controller: string;
  readonly dir: string;
}

class FileCgroupTree implements CgroupTree {
  readonly unified: boolean;
  readonly #options: CgroupTreeOptions;
  readonly #trees: readonly Hierarchy[];
  /** The hierarchy that existence and children are read from. */
  readonly #first: Hierarchy | undefined;

  constructor(options: CgroupTreeOptions, trees: readonly Hierarchy[]) {
    this.#options = options;
    this.#trees = trees;
    this.unified = this.#trees.length === 1 && this.#trees[0]?.controller === "";
    this.#first = this.#trees.find((tree) => tree.controller === "memory") ?? this.#trees[0];
  }

  async make(path: string): Promise<void> {
    for (const { dir, controller } of this.#trees) {
      if (this.#options.besideSystemd === true && systemdTrees.includes(controller)) continue;
      await makeFolder(join(dir, path), 0o755);
      if (controller === "cpuset") await inheritCpuset(dir, path);
      if (this.unified) await delegate(dir, path);
    }
  }

  async exists(path: string): Promise<boolean> {
    if (this.#first === undefined) return false;
    try {
      return statSync(join(this.#first.dir, path), { throwIfNoEntry: false })?.isDirectory() ?? false;
    } catch {
      return false; // as upstream; what prevents the access also prevents its creation, whose error says why
    }
  }

  async children(path: string): Promise<string[]> {
    return this.#first === undefined ? [] : readdirOrNone(join(this.#first.dir, path));
  }

  async limit(path: string, { shares, quotaUs = 0, memoryBytes = 0, memoryMinBytes, pids = 0 }: CgroupLimits): Promise<boolean> {
    const written: boolean[] = [];
    if (shares !== undefined) {
      if (this.unified) written.push(await this.#write("cpu", path, "cpu.weight", cpuWeight(shares)));
      else written.push(await this.#write("cpu", path, "cpu.shares", shares));
    }
    if (quotaUs > 0) {
      if (this.unified) written.push(await this.#write("cpu", path, "cpu.max", `${quotaUs} ${this.#options.cfsPeriodUs}`));
      else {
        written.push(await this.#write("cpu", path, "cpu.cfs_period_us", this.#options.cfsPeriodUs));
        written.push(await this.#write("cpu", path, "cpu.cfs_quota_us", quotaUs));
      }
    }
    if (memoryBytes > 0) {
      written.push(await this.#write("memory", path, this.unified ? "memory.max" : "memory.limit_in_bytes", memoryBytes));
    }
    if (this.unified && memoryMinBytes !== undefined)
      written.push(await this.#write("memory", path, "memory.min", memoryMinBytes));
    if (pids > 0) written.push(await this.#write("pids", path, "pids.max", pids));
    return written.every(Boolean);
  }

  async memoryUsageBytes(path: string): Promise<number> {
    const file = this.unified ? "memory.current" : "memory.usage_in_bytes";
    return Number(await readFile(join(this.#treeOf("memory") ?? "", path, file), "utf8"));
  }

  async memory(path: string): Promise<{ limitBytes: number; workingSetBytes: number }> {
    const file = (name: string): Promise<string> => readFile(join(this.#treeOf("memory") ?? "", path, name), "utf8");
    const [limit, stat, usage] = await Promise.all([
      file(this.unified ? "memory.max" : "memory.limit_in_bytes"),
      file("memory.stat"),
      this.memoryUsageBytes(path),
    ]);
    const inactive = new RegExp(`^${this.unified ? "" : "total_"}inactive_file (\\d+)$`, "m").exec(stat)?.[1] ?? 0;
    return { limitBytes: boundedBytes(limit), workingSetBytes: Math.max(0, usage - Number(inactive)) };
  }

  async taskCount(path: string): Promise<number> {
    const text = await readFile(join(this.#treeOf("pids") ?? "", path, "pids.current"), "utf8").catch(() => "");
    return Number(text);
  }

  async addProcess(path: string, pid: number): Promise<void> {
    for (const { dir } of this.#trees) await writeFile(join(dir, path, "cgroup.procs"), String(pid));
  }

  async processesIn(path: string): Promise<number[]> {
    const text = this.#first === undefined ? "" : await readFile(join(this.#first.dir, path, "cgroup.procs"), "utf8");
    return text.split("\n").filter(Boolean).map(Number);
  }

  async isPopulated(path: string): Promise<boolean> {
    if (this.#first === undefined) return false;
    // The cgroup may be removed concurrently.
    if ((await this.processesIn(path).catch(() => [])).length > 0) return true;
    for (const name of await foldersIn(join(this.#first.dir, path))) if (await this.isPopulated(join(path, name))) return true;
    return false;
  }

  async remove(path: string): Promise<boolean> {
    let gone = true;
    for (const tree of this.#trees) if (tree !== this.#first) gone = (await removeTree(join(tree.dir, path))) && gone;
    // `first` is removed last: while it is there, the cgroup is found again, and what is left of it removed.
    return gone && (this.#first === undefined || removeTree(join(this.#first.dir, path)));
  }

  #treeOf(controller: string): string | undefined {
    return this.#trees.find((candidate) => candidate.controller === controller || this.unified)?.dir;
  }

  /** A limit that the kernel rejects (e.g. a missing controller) is logged and does not fail the Pod. */
  async #write(controller: string, path: string, file: string, value: string | number): Promise<boolean> {
    const dir = this.#treeOf(controller);
    if (dir === undefined) return true;
    const target = join(dir, path, file);
    if (textOf(target) === String(value)) return true;
    try {
      await writeFile(target, String(value));
      return true;
    } catch (err) {
      this.#options.log.warn("cannot set a limit of a cgroup", { cgroup: path, file, value, reason: messageOf(err) });
      return false;
    }
  }
}

/** Without a limit, v2 reports `max` and v1 the largest page-aligned number. */
function boundedBytes(limit: string): number {
  const bytes = Number(limit);
  return bytes < 2 ** 62 ? bytes : 0;
}

function controllerTrees(mountPoint: string): Hierarchy[] {
  const names = readdirOrNone(mountPoint);
  if (names.includes("cgroup.controllers")) return [{ controller: "", dir: mountPoint }];
  const trees: Hierarchy[] = [];
  // On hybrid systems `unified` has no controllers, but it contains processes: its cgroups must be removed with the rest.
  for (const controller of names) {
    // a co-mounted hierarchy (`cpu,cpuacct`); its controllers also have separate symlinks
    if (controller.includes(",")) continue;
    const entries = readdirOrNone(join(mountPoint, controller));
    if (entries.includes("cgroup.procs")) trees.push({ controller, dir: join(mountPoint, controller) });
  }
  return trees;
}

function readdirOrNone(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch {
    return [];
  }
}

/** @returns undefined when the file cannot be read */
function textOf(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8").trimEnd();
  } catch {
    return undefined;
  }
}

/** A new v1 cpuset has no CPUs and accepts no process until the parent's values are copied, from the root down. */
async function inheritCpuset(dir: string, path: string): Promise<void> {
  let at = dir;
  for (const part of path.split("/").filter((name) => name !== "")) {
    const next = join(at, part);
    for (const file of ["cpuset.cpus", "cpuset.mems"]) {
      const own = (await readFile(join(next, file), "utf8")).trim();
      if (own === "") await writeFile(join(next, file), (await readFile(join(at, file), "utf8")).trim());
    }
    at = next;
  }
}

/** In the unified hierarchy each parent must enable the controllers for its children. */
async function delegate(dir: string, path: string): Promise<void> {
  let at = dir;
  for (const part of path.split("/").filter((name) => name !== "")) {
    const available = (await readFile(join(at, "cgroup.controllers"), "utf8")).trim().split(" ");
    for (const controller of controllersWithLimits.filter((name) => available.includes(name))) {
      await writeFile(join(at, "cgroup.subtree_control"), `+${controller}`);
    }
    at = join(at, part);
  }
}

async function foldersIn(dir: string): Promise<string[]> {
  try {
    const entries = await readdir(dir, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
  } catch {
    return [];
  }
}

/** Removes from the leaves up; a cgroup with processes stays. */
async function removeTree(dir: string): Promise<boolean> {
  let gone = true;
  for (const name of await foldersIn(dir)) gone = (await removeTree(join(dir, name))) && gone;
  try {
    await rmdir(dir);
  } catch (err) {
    if (errorCode(err) !== "ENOENT") return false;
  }
  return gone;
}
