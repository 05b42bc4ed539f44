import { readdirSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { errorCode } from "@coxswain/apimachinery/process/narrowing/error-code";

/**
 * Names in a directory; empty when it does not exist.
 * @throws Error when it cannot be read: its contents must not be treated as deleted
 */
export const namesIn = (folder: string): Promise<string[]> =>
  readdir(folder).catch((err: NodeJS.ErrnoException) => {
    if (err.code === "ENOENT" || err.code === "ENOTDIR") return [];
    throw err;
  });

/**
 * As `namesIn`, for small directories that are read every few seconds: the kernel has them in memory, and a trip to another thread costs more
 * than the call.
 */
export function namesNow(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (err) {
    if (["ENOENT", "ENOTDIR"].includes(errorCode(err) ?? "")) return [];
    throw err;
  }
}
