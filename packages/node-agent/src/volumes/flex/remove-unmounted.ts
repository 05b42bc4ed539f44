import { rmdir } from "node:fs/promises";

/** Takes away a folder that a driver has unmounted, and may have removed. @throws Error when something is in it */
export async function removeUnmounted(folder: string): Promise<void> {
  await rmdir(folder).catch((err: NodeJS.ErrnoException) => {
    if (err.code !== "ENOENT") throw err;
  });
}
