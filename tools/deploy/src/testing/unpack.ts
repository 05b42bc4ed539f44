import { chmodSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { makeFolderSync } from "@coxswain/apimachinery/process/files/make-folder";
import type { TarEntry } from "@coxswain/images/tar";

/** Extracts the entries like tar. */
export function unpack(entries: readonly TarEntry[], folder: string): void {
  for (const entry of entries) {
    const path = join(folder, entry.path);
    if (entry.type === "folder") {
      makeFolderSync(path);
      continue;
    }
    makeFolderSync(dirname(path));
    if (entry.type === "symlink") {
      symlinkSync(entry.target, path);
    } else {
      writeFileSync(path, entry.content);
      chmodSync(path, entry.mode ?? 0o644);
    }
  }
}
