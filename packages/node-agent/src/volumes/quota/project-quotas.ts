import { execFile } from "node:child_process";
import { access, constants, mkdtemp, readFile, realpath, rm, statfs, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

/** Executes a program and resolves to its stdout. @throws Error when it fails */
export type Run = (program: string, args: readonly string[]) => Promise<string>;

/** File systems with project quotas, by magic number. */
const kinds: Readonly<Record<number, { name: string; maxBytes: bigint }>> = {
  [0x58465342]: { name: "XFS", maxBytes: 2n ** 63n - 1n },
  [0xef53]: { name: "ext4", maxBytes: 2n ** 58n - 1n },
};
const programs = ["/sbin/xfs_quota", "/usr/sbin/xfs_quota", "/bin/xfs_quota"];

/** Project quotas of one file system. */
export interface ProjectQuotas {
  /** Puts a directory tree into a project; `limited` sets the largest possible hard limit. */
  join(path: string, id: number, limited: boolean): Promise<void>;
  /** Removes the limit. */
  release(id: number): Promise<void>;
  usage(id: number): Promise<{ bytes: number; inodes: number }>;
}

export interface ProjectQuotaOptions {
  run?: Run;
  /** Candidate paths of xfs_quota, which also supports ext4. */
  programs?: readonly string[];
  mountsFile?: string;
  /** The magic number of the file system at a path. */
  magicOf?: (path: string) => Promise<number>;
}

/**
 * @returns undefined when the file system has no project quotas, or xfs_quota is not installed
 * @throws Error when that cannot be determined
 * Source: pkg/volume/util/fsquota/common/quota_linux_common_impl.go
 */
export async function openProjectQuotas(path: string, options: ProjectQuotaOptions = {}): Promise<ProjectQuotas | undefined> {
  const { run = runProgram, magicOf = async (at) => (await statfs(at)).type } = options;
  const program = await firstExecutable(options.programs ?? programs);
  const mount = mountOf(await readFile("/proc/self/mounts", "utf8"), await realpath(path));
  const kind = kinds[await magicOf(path)];
  if (program === undefined || mount === undefined || kind === undefined) return undefined;

  /** Gets a mount table with this mount only: xfs_quota would access all others and block on unresponsive ones. */
  const xfsQuota = async (command: string): Promise<string> => {
    const dir = await mkdtemp(join(tmpdir(), "mounts"));
    const mounts = join(dir, "mounts");
    try {
      await writeFile(mounts, `${mount.line}\n`);
      const files = ["-t", mounts, "-P/dev/null", "-D/dev/null"];
      return await run(program, [...files, "-x", "-f", mount.point, "-c", command]);
    } finally {
      await rm(dir, { recursive: true, force: true });
    }
  };

  const count = async (what: "-b" | "-i", id: number): Promise<number> => {
    const text = await xfsQuota(`quota -p -N -n -v ${what} ${id}`);
    // xfs_quota prints nothing for unused projects on XFS.
    if (text === "" && kind.name === "XFS") return 0;
    const found = /^\S*\s*(\d+)/.exec(text)?.[1];
    if (found === undefined) throw new Error(`unable to parse quota output '${text}'`);
    return Number(found);
  };

  if (!(await xfsQuota("state -p")).includes("Accounting: ON")) return undefined;
  const limit = (id: number, bytes: bigint): Promise<string> => xfsQuota(`limit -p bhard=${bytes} bsoft=${bytes} ${id}`);
  return {
    async join(folder, id, limited) {
      await limit(id, limited ? kind.maxBytes : 0n);
      await xfsQuota(`project -s -p ${folder} ${id}`);
    },
    release: async (id) => void (await limit(id, 0n)),
    usage: async (id) => ({ bytes: (await count("-b", id)) * 1024, inodes: await count("-i", id) }),
  };
}

/** Pure: the mount that contains `path` (without symbolic links), and its line in the mount table. */
export function mountOf(mounts: string, path: string): { point: string; line: string } | undefined {
  let found: { point: string; line: string } | undefined;
  for (const line of mounts.split("\n")) {
    const point = line.split(" ")[1];
    if (point === undefined) continue;
    const isAbove = point === "/" || path === point || path.startsWith(`${point}/`);
    // A later mount at the same point covers the earlier one.
    if (isAbove && point.length >= (found?.point.length ?? 0)) found = { point, line };
  }
  return found;
}

async function firstExecutable(candidates: readonly string[]): Promise<string | undefined> {
  for (const program of candidates) {
    const isThere = await access(program, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (isThere) return program;
  }
  return undefined;
}

const execute = promisify(execFile);
const runProgram: Run = async (program, args) => (await execute(program, args, { timeout: 60_000 })).stdout;
