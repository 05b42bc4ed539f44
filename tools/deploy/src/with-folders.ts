import type { TarEntry } from "@coxswain/images/tar";

/** Adds entries for missing parent folders, each before its contents. */
export function withFolders(entries: readonly TarEntry[]): TarEntry[] {
  const seen = new Set(entries.filter(({ type }) => type === "folder").map(({ path }) => path));
  return entries.flatMap((entry) => {
    const parts = entry.path.split("/").slice(0, -1);
    const missing = parts.map((_, i) => parts.slice(0, i + 1).join("/")).filter((path) => !seen.has(path));
    for (const path of missing) seen.add(path);
    return [...missing.map((path): TarEntry => ({ type: "folder", path })), entry];
  });
}
