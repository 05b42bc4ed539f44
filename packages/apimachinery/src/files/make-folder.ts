import { mkdirSync, statSync } from "node:fs";
import { mkdir, stat } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * Makes a folder and those above it that are missing. Node's `recursive` is not used: where mkdir fails with ENOENT below a folder
 * that is there, as in /proc, it tries again for ever, with a thread of its own or the only one.
 * @param mode of all that are made, less the process's mask
 * @throws what mkdir says
 * Source: Go's os.MkdirAll
 */
export async function makeFolder(path: string, mode = 0o777): Promise<void> {
  if (await isFolder(path)) return;
  const parent = dirname(path);
  if (parent !== path) await makeFolder(parent, mode);
  try {
    await mkdir(path, { mode });
  } catch (err) {
    if (!(await isFolder(path))) throw err; // somebody else may have been faster
  }
}

/** The same while everybody waits: at the start of a program. */
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
