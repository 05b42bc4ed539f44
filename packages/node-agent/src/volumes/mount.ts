import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Mount operations; faked in tests that run unprivileged. */
export interface Mounter {
  mount(source: string, target: string, options: { type?: string; options?: readonly string[] }): Promise<void>;
  unmount(target: string): Promise<void>;
  /** Mount points at or below `prefix`, the last mounted first. */
  mountsBelow(prefix: string): Promise<string[]>;
}

/** Executes mount(8) and umount(8), and reads /proc/self/mountinfo. */
export const systemMounter: Mounter = {
  async mount(source, target, { type, options }) {
    const args: string[] = [];
    if (type !== undefined) args.push("-t", type);
    if (options !== undefined && options.length > 0) args.push("-o", options.join(","));
    await run("mount", [...args, "--", source, target], { timeout: 60_000 });
  },
  async unmount(target) {
    await run("umount", ["--", target], { timeout: 60_000 });
  },
  async mountsBelow(prefix) {
    return mountPoints(await readFile("/proc/self/mountinfo", "utf8"), prefix);
  },
};

/** True when `path` itself is a mount point. */
export async function isMounted(path: string, mounter: Pick<Mounter, "mountsBelow">): Promise<boolean> {
  return (await mounter.mountsBelow(path)).includes(path);
}

/** Pure: see `Mounter.mountsBelow`. The kernel writes space, tab, newline and backslash as octal escapes. */
export function mountPoints(mountInfo: string, prefix: string): string[] {
  const found: string[] = [];
  for (const line of mountInfo.split("\n")) {
    const field = line.split(" ")[4];
    if (field === undefined) continue;
    const path = field.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
    if (path === prefix || path.startsWith(`${prefix}/`)) found.push(path);
  }
  return found.reverse();
}
