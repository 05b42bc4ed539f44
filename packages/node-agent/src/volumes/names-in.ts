import { readdir } from "node:fs/promises";

/**
 * Names in a directory; empty when it does not exist.
 * @throws Error when it cannot be read: its contents must not be treated as deleted
 */
export const namesIn = (folder: string): Promise<string[]> =>
  readdir(folder).catch((err: NodeJS.ErrnoException) => {
    if (err.code === "ENOENT" || err.code === "ENOTDIR") return [];
    throw err;
  });
