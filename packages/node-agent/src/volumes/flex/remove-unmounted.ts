import { rmdir } from "node:fs/promises";

/** Removes an unmounted directory if it still exists. @throws Error when it is not empty */
export async function removeUnmounted(folder: string): Promise<void> {
  await rmdir(folder).catch((err: NodeJS.ErrnoException) => {
    if (err.code !== "ENOENT") throw err;
  });
}
