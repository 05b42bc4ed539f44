/** Which daemons a machine runs, and from which archive. */

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { Failure } from "../failure.ts";
import { linkTarget } from "../host/files.ts";
import { tryProgram } from "../host/programs.ts";
import { isActive, unitFolder } from "../host/systemd.ts";

export interface ArchiveVersion {
  /** Folder of the archive. */
  readonly home: string;
  readonly coxswain: string;
  readonly kubernetes: string;
}

/** @throws Failure */
export function versionOf(home: string): ArchiveVersion {
  let text: string;
  try {
    text = readFileSync(join(home, "VERSION"), "utf8");
  } catch (err) {
    throw new Failure(`${home} is not an archive of Coxswain: ${messageOf(err)}`);
  }
  const [, coxswain, kubernetes] = /^Coxswain (\S+), Kubernetes (\S+)\n$/.exec(text) ?? [];
  if (coxswain === undefined || kubernetes === undefined) throw new Failure(`${home}/VERSION is damaged`);
  return { home, coxswain, kubernetes };
}

const kubelet = "/usr/bin/kubelet";

/** The archive whose programs are linked in /usr/bin. @throws Failure on a machine that coxswain init or join did not set up */
export async function installedArchive(): Promise<ArchiveVersion> {
  const target = linkTarget(kubelet);
  if (target === undefined) throw new Failure(`${kubelet} does not exist: this machine was not set up by coxswain init or join`);
  const [, home] = /^(.+)\/bin\/kubelet$/.exec(target) ?? [];
  // A unit at another path belongs to a package whose program was replaced.
  if (home !== undefined && existsSync(join(unitFolder, "kubelet.service"))) return versionOf(home);
  const version = (await tryProgram(kubelet, "--version"))?.trim() ?? "of unknown version";
  throw new Failure(
    `${kubelet} (${version}) was not set up by coxswain init or join: upgrade leaves it alone. Daemons of others are replaced one by one, and put back, by hand: docs/installing.md, In place of upstream's daemons`,
  );
}

/** Whether a unit's process was started from an archive. */
export async function runsFrom(unit: string, home: string): Promise<boolean> {
  const pid = (await tryProgram("systemctl", "show", "--property=MainPID", "--value", unit))?.trim();
  if (pid === undefined || pid === "" || pid === "0") return false;
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8")
      .split("\0")
      .some((word) => word.startsWith(`${home}/lib/`));
  } catch {
    return false; // the process has just exited
  }
}

/** A daemon that exits at once and is restarted by systemd is briefly active each time. */
const steadySeconds = 5;

/** Whether a unit has been active for some time. */
export async function isSteady(unit: string): Promise<boolean> {
  const text = await tryProgram("systemctl", "show", "--property=ActiveEnterTimestampMonotonic", "--value", unit);
  const uptime = Number(readFileSync("/proc/uptime", "utf8").split(" ")[0]);
  return (await isActive(unit)) && uptime - Number(text?.trim() || uptime * 1e6) / 1e6 >= steadySeconds;
}
