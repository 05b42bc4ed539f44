import { chmod, chown, mkdir, readdir, readFile, readlink, rename, rm, symlink, unlink, writeFile } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";
import { makeFolder } from "@coxswain/apimachinery/process/files/make-folder";

/** Contents and attributes of a file. */
export interface PayloadFile {
  data: Buffer;
  /** Permission bits. */
  mode: number;
  /** Owner of the file; the directory's owner when undefined. */
  uid?: number | undefined;
}

/** Relative path → file; paths may contain directories: `etc/app/config`. */
type Payload = ReadonlyMap<string, PayloadFile>;

const dataLink = "..data";
const newDataLink = "..data_tmp";
const maxFileNameLength = 255;
const maxPathLength = 4096;

/**
 * Replaces the files in `dir` with the payload atomically: readers see either the old or the new set. The files are in a
 * directory `..<time>`, `..data` links to it, and user-visible names link to `..data/<name>`.
 * @returns whether anything changed
 * @throws Error for a path that is absolute, leaves the directory, or begins with `..`
 * Source: pkg/volume/util/atomic_writer.go
 */
export async function writeAtomically(dir: string, payload: Payload, now: number): Promise<boolean> {
  for (const path of payload.keys()) checkPath(path);
  const previous = await linkTarget(join(dir, dataLink));
  if (previous === undefined) await makeFolder(dir);
  const visible = topLevelNames(payload);
  const stale = (await readdir(dir)).filter((name) => !name.startsWith("..") && !visible.has(name));
  const complete = previous !== undefined && (await hasExactly(join(dir, previous), payload));
  if (complete && stale.length === 0 && (await linksPresent(dir, visible))) return false;

  if (!complete) {
    const stamp = new Date(now).toISOString().replace(/[-:T]/g, "_").replace("Z", "");
    const folder = `..${stamp}${Math.trunc(Math.random() * 1e9)}`;
    await mkdir(join(dir, folder), { mode: 0o755 });
    try {
      await chmod(join(dir, folder), 0o755);
      for (const [path, file] of payload) await writeOne(join(dir, folder, path), file);
    } catch (err) {
      // Failed updates are retried forever: each would leave a directory, usually in tmpfs.
      await rm(join(dir, folder), { recursive: true, force: true });
      throw err;
    }
    await rm(join(dir, newDataLink), { force: true });
    await symlink(folder, join(dir, newDataLink));
    // The atomic switch.
    await rename(join(dir, newDataLink), join(dir, dataLink));
  }
  for (const name of visible) {
    if ((await linkTarget(join(dir, name))) === join(dataLink, name)) continue;
    await rm(join(dir, name), { force: true, recursive: true });
    await symlink(join(dataLink, name), join(dir, name));
  }
  for (const name of stale) await unlink(join(dir, name)).catch(() => undefined);
  const current = await linkTarget(join(dir, dataLink));
  for (const name of await readdir(dir)) {
    if (/^\.\.\d/.test(name) && name !== current) await rm(join(dir, name), { recursive: true, force: true });
  }
  return true;
}

/** Names the contents that `writeAtomically` wrote last: new ones have another name. @returns undefined when there are none */
export function contentsOf(dir: string): Promise<string | undefined> {
  return linkTarget(join(dir, dataLink));
}

function checkPath(path: string): void {
  if (path === "" || path.startsWith("/")) throw new Error(`invalid path: must be relative path: ${path}`);
  if (path.length > maxPathLength) throw new Error(`invalid path: must be less than or equal to ${maxPathLength} characters`);
  for (const part of path.includes("/") ? path.split("/") : [path]) {
    if (part === "..") throw new Error(`invalid path: must not contain '..': ${path}`);
    if (part.length > maxFileNameLength)
      throw new Error(`invalid path: filenames must be less than or equal to ${maxFileNameLength} characters`);
  }
  if (normalized(path).startsWith("..")) throw new Error(`invalid path: must not start with '..': ${path}`);
}

async function writeOne(path: string, file: PayloadFile): Promise<void> {
  await makeFolder(dirname(path), 0o755);
  await writeFile(path, file.data, { mode: file.mode });
  await chmod(path, file.mode); // writeFile's mode is subject to the umask
  if (file.uid !== undefined) await chown(path, file.uid, -1);
}

/** As `normalize`, which takes a microsecond, of up to 100,000 paths that are mostly names. */
const normalized = (path: string): string => (path.includes("/") ? normalize(path) : path);

function topLevelNames(payload: Payload): Set<string> {
  const names = new Set<string>();
  for (const path of payload.keys()) names.add(path.includes("/") ? normalize(path).split("/")[0]! : path);
  return names;
}

async function linkTarget(path: string): Promise<string | undefined> {
  try {
    return await readlink(path);
  } catch {
    return undefined;
  }
}

async function linksPresent(dir: string, names: ReadonlySet<string>): Promise<boolean> {
  for (const name of names) if ((await linkTarget(join(dir, name))) !== join(dataLink, name)) return false;
  return true;
}

/** Compares paths and contents. Modes are ignored: they may have been widened for the fsGroup after writing. */
async function hasExactly(folder: string, payload: Payload): Promise<boolean> {
  const present = await filesBelow(folder, "");
  if (present === undefined || present.length !== payload.size) return false;
  const wanted = new Map([...payload].map(([path, file]) => [normalized(path), file]));
  for (const path of present) {
    const file = wanted.get(path);
    if (file === undefined || !(await readFile(join(folder, path))).equals(file.data)) return false;
  }
  return true;
}

async function filesBelow(folder: string, prefix: string): Promise<string[] | undefined> {
  try {
    const files: string[] = [];
    for (const entry of await readdir(join(folder, prefix), { withFileTypes: true })) {
      const path = prefix === "" ? entry.name : `${prefix}/${entry.name}`;
      const below = entry.isDirectory() ? await filesBelow(folder, path) : [path];
      for (const file of below ?? []) files.push(file); // spread, 120,000 files would exceed the stack
    }
    return files;
  } catch {
    return undefined;
  }
}
