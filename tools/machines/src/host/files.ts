import { lstatSync, readFileSync, readlinkSync, rmSync, symlinkSync } from "node:fs";
import { PkiError, readIfThere, writeWhole } from "@coxswain/pki/files";
import { header } from "./units.ts";

/** A file as it should be on the machine. */
export interface WantedFile {
  readonly path: string;
  readonly content: string;
  /** Default 0o644. */
  readonly mode?: number;
}

/** `write /etc/…` for each file that is missing or differs. */
export function missingFiles(files: readonly WantedFile[]): string[] {
  return files.flatMap(({ path, content }) => {
    const now = readIfThere(path);
    return now === content ? [] : [`${now === undefined ? "write" : "change"} ${path}`];
  });
}

/** Writes each file atomically; unchanged files are not written. The mode, 0644 by default, applies to new files. */
export function writeFiles(files: readonly WantedFile[]): void {
  for (const { path, content, mode = 0o644 } of files) if (readIfThere(path) !== content) writeWhole(path, content, mode);
}

/** @returns the lines of a file without the last line's end; [] when it cannot be read, as of a kernel without that feature */
export function linesOf(path: string): string[] {
  try {
    return readFileSync(path, "utf8").trimEnd().split("\n");
  } catch {
    return [];
  }
}

/** Whether this program wrote the file. */
export const isOurs = (path: string): boolean => readIfThere(path)?.startsWith(header.trimEnd()) === true;

/** Target of a symbolic link; undefined when the path does not exist, "" when it is not a link. */
export function linkTarget(path: string): string | undefined {
  if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return undefined;
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}

/** Replaces the file or link at the path; not atomic. */
export function writeLink(path: string, target: string): void {
  rmSync(path, { force: true });
  symlinkSync(target, path);
}

export { PkiError, readIfThere, writeWhole };
