import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { settings } from "./kubectl.ts";

/**
 * The files of one of Debian's packages, without those it depends on and without installing anything: for programs that
 * need nothing but the C library.
 * @returns the folder that stands for `/`
 */
export function unpackedPackage(name: string): string {
  const folder = join(settings.root, ".cox", "debian");
  const target = join(folder, name);
  if (existsSync(target)) return target;
  mkdirSync(folder, { recursive: true });
  const scratch = mkdtempSync(join(folder, "fetch-"));
  const run = (program: string, ...args: string[]): void => {
    execFileSync(program, args, { cwd: scratch, stdio: ["ignore", "ignore", "pipe"] });
  };
  try {
    try {
      run("apt-get", "download", "-q", name);
    } catch {
      run("apt-get", "update", "-q"); // the lists may be missing or old
      run("apt-get", "download", "-q", name);
    }
    const archive = readdirSync(scratch).find((file) => file.endsWith(".deb"));
    if (archive === undefined) throw new Error(`apt-get downloaded no ${name}`);
    run("dpkg-deb", "--extract", archive, "files");
    renameSync(join(scratch, "files"), target);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  return target;
}
