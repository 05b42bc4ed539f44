import { readFileSync } from "node:fs";
import { tryExec } from "./commands.ts";

/** Mount points below the folders, in mount order. Source: proc(5), field 5 of /proc/<pid>/mountinfo, with octal escapes */
export function mountsBelow(folders: readonly string[], mountinfo = readFileSync("/proc/self/mountinfo", "utf8")): string[] {
  const decoded = (path: string): string =>
    path.replaceAll(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
  return mountinfo
    .split("\n")
    .map((line) => decoded(line.split(" ")[4] ?? ""))
    .filter((path) => folders.some((folder) => path.startsWith(`${folder}/`)));
}

/** Unmounts in reverse order. Busy mounts are detached lazily (MNT_DETACH). */
export async function unmountBelow(folders: readonly string[]): Promise<void> {
  const ordered = mountsBelow(folders).toReversed();
  if (ordered.length > 0) await tryExec("umount", ["--", ...ordered]);
  const busy = mountsBelow(folders).toReversed();
  if (busy.length > 0) await tryExec("umount", ["--lazy", "--", ...busy]);
}
