import { mkdirSync, statSync } from "node:fs";
import { mkdir, stat } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * Creates a folder and its missing parents. Replaces Node's `recursive` option, which retries forever (blocking a thread) when
 * mkdir fails with ENOENT below an existing folder, as in /proc.
 * @param mode of all created folders, subject to the umask
 * @throws the error of mkdir
 * Source: Go's os.MkdirAll
 */
export async function makeFolder(path: string, mode = 0o777): Promise<void> {
  if (await isFolder(path)) return;
  const parent = dirname(path);
  if (parent !== path) await makeFolder(parent, mode);
  try {
    await mkdir(path, { mode });
  } catch (err) {
    if (!(await isFolder(path))) throw err; // it may have been created concurrently
  }
}

/** Same as {@link makeFolder}, synchronously; for the start of a program. */
export function makeFolderSync(path: string, mode = 0o777): void {
  if (isFolderSync(path)) return;
  const parent = dirname(path);
  if (parent !== path) makeFolderSync(parent, mode);
  try {
    mkdirSync(path, { mode });
  } catch (err) {
    if (!isFolderSync(path)) throw err;
  }
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (info) => info.isDirectory(),
    () => false,
  );
}

function isFolderSync(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
