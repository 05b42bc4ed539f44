import { readlinkSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const links = new Set<string>();

/**
 * Reserves a resource of the machine, such as a port, for this process until it exits. Tests run in several processes, and what
 * one has chosen may not be in use yet when another one chooses.
 * @returns false when another running process has reserved it
 */
export function reserve(name: string): boolean {
  const link = join(tmpdir(), `cox-test-${name}`);
  if (linkToSelf(link)) return true;
  if (ownerRuns(link)) return false;
  rmSync(link, { force: true });
  return linkToSelf(link);
}

/** Creating a symbolic link is atomic, and its target names the owner. */
function linkToSelf(link: string): boolean {
  try {
    symlinkSync(String(process.pid), link);
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw err;
  }
  if (links.size === 0) process.once("exit", giveBack);
  links.add(link);
  return true;
}

function giveBack(): void {
  for (const link of links) rmSync(link, { force: true });
}

function ownerRuns(link: string): boolean {
  try {
    return isRunning(Number(readlinkSync(link)));
  } catch {
    return false; // given back meanwhile
  }
}

export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (err) {
    return (err as NodeJS.ErrnoException).code === "EPERM";
  }
}
