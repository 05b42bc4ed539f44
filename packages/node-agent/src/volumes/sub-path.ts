import { constants } from "node:fs";
import { chmod, type FileHandle, mkdir, open, realpath, stat, writeFile } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import { makeFolder } from "@coxswain/apimachinery/process/files/make-folder";
import { isMounted, type Mounter } from "./mount.ts";

const openOnly = 0o10000000; // O_PATH: refers to the path without opening the file

/** @returns upstream's error text for an invalid subPath; undefined when it is valid */
export function checkSubPath(subPath: string): string | undefined {
  if (subPath.startsWith("/")) return `error SubPath \`${subPath}\` must not be an absolute path`;
  if (subPath.split("/").includes("..")) return `unable to provision SubPath \`${subPath}\`: must not contain '..'`;
  return undefined;
}

/**
 * Bind-mounts an existing file or directory of a volume to a path that can be mounted into a container. Every path component
 * is opened relative to its parent without following symbolic links, so that a container that modifies the volume at the
 * same time cannot redirect the mount to a path outside of it.
 * @param target below the Pod's directory: `volume-subpaths/<volume>/<container>/<index>`
 * @throws Error when the path leaves the volume
 * Source: k8s.io/mount-utils subpath_linux.go
 */
export async function bindSubPath(volumeDir: string, subPath: string, target: string, mounter: Mounter): Promise<string> {
  const root = await realpath(volumeDir);
  const real = await realpath(join(root, subPath));
  if (real !== root && !real.startsWith(root + sep))
    throw new Error(`subpath ${JSON.stringify(subPath)} is not within the volume path`);
  const handle = await openWithin(root, relative(root, real));
  try {
    if (await isMounted(target, mounter)) {
      // Already bound, unless the volume's contents were replaced since.
      const [bound, wanted] = await Promise.all([stat(target).catch(() => undefined), handle.stat()]);
      if (bound?.ino === wanted.ino && bound?.dev === wanted.dev) return target;
      await mounter.unmount(target);
    }
    const info = await handle.stat();
    if (info.isDirectory()) await makeFolder(target, 0o750);
    else {
      await makeFolder(dirname(target), 0o750);
      await writeFile(target, "", { mode: 0o640, flag: "a" });
    }
    await mounter.mount(`/proc/${process.pid}/fd/${handle.fd}`, target, { options: ["bind"] });
    return target;
  } finally {
    await handle.close();
  }
}

/**
 * Creates missing directories of a subPath without following links out of the volume.
 * @throws Error when the path leaves the volume
 */
export async function makeSubPath(volumeDir: string, subPath: string): Promise<void> {
  const root = await realpath(volumeDir);
  const parts = subPath.split("/").filter((part) => part !== "" && part !== ".");
  let at = root;
  for (let i = 0; i < parts.length; i++) {
    const next = join(at, parts[i]!);
    const real = await realpath(next).catch((err: NodeJS.ErrnoException) => {
      if (err.code === "ENOENT") return undefined;
      throw err;
    });
    if (real === undefined) return makeFolders(root, relative(root, at), parts.slice(i));
    if (real !== root && !real.startsWith(root + sep))
      throw new Error(`subpath ${JSON.stringify(subPath)} is not within the volume path`);
    at = real;
  }
}

/** The last directory gets the mode of the volume's root regardless of the umask: containers see it as the volume. */
async function makeFolders(root: string, parent: string, names: readonly string[]): Promise<void> {
  const mode = (await stat(root)).mode & 0o7777;
  let handle = await openWithin(root, parent);
  try {
    for (const name of names) {
      await mkdir(`/proc/self/fd/${handle.fd}/${name}`, { mode: mode & 0o777 });
      handle = await openBelow(handle, name);
      if (!(await handle.stat()).isDirectory()) throw new Error(`${name} was replaced during its creation`);
    }
    await chmod(`/proc/self/fd/${handle.fd}`, mode);
  } finally {
    await handle.close();
  }
}

/** A handle for `path` below `root`, opened component by component. @throws Error when a component is a symbolic link */
async function openWithin(root: string, path: string): Promise<FileHandle> {
  let handle = await open(root, openOnly | constants.O_NOFOLLOW);
  try {
    for (const part of path.split("/").filter((name) => name !== "")) {
      handle = await openBelow(handle, part);
      if ((await handle.stat()).isSymbolicLink()) throw new Error(`${join(root, path)}: a part of the path is a link`);
    }
    return handle;
  } catch (err) {
    await handle.close();
    throw err;
  }
}

/** Opens an entry of `parent` and closes `parent`, also on failure. @throws Error when there is no such entry */
async function openBelow(parent: FileHandle, name: string): Promise<FileHandle> {
  try {
    return await open(`/proc/self/fd/${parent.fd}/${name}`, openOnly | constants.O_NOFOLLOW);
  } finally {
    await parent.close();
  }
}
