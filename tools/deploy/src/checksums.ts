import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

/** Writes `SHA256SUMS` next to the files, in the format of `sha256sum --check`. @returns its path */
export function writeChecksums(files: readonly string[]): string {
  const line = (file: string): string => `${createHash("sha256").update(readFileSync(file)).digest("hex")}  ${basename(file)}\n`;
  const path = join(dirname(files[0]!), "SHA256SUMS");
  writeFileSync(path, files.map(line).sort().join(""));
  return path;
}
