import { readdir, rmdir } from "node:fs/promises";

/** Empty where there is no such folder. */
export async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => []);
}

/** Takes away a folder that a driver has unmounted, and may have removed. @throws Error when something is in it */
export async function removeUnmounted(folder: string): Promise<void> {
  await rmdir(folder).catch((err: NodeJS.ErrnoException) => {
    if (err.code !== "ENOENT") throw err;
  });
}
