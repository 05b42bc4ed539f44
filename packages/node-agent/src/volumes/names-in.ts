import { readdir } from "node:fs/promises";

/**
 * Empty where there is no such folder.
 * @throws Error for one that cannot be read: what is in it must not be taken for gone
 */
export const namesIn = (folder: string): Promise<string[]> =>
  readdir(folder).catch((err: NodeJS.ErrnoException) => {
    if (err.code === "ENOENT" || err.code === "ENOTDIR") return [];
    throw err;
  });
