import { spawn } from "node:child_process";
import { chmod, lstat, mkdir, readdir, realpath, rmdir, statfs } from "node:fs/promises";
import { join } from "node:path";
import { isVolumeName } from "./decisions.ts";

/** The folders of volumes on this node. Names are those of `planClaim` and `planVolume`. */
export interface Folders {
  /** Without links. */
  readonly root: string;
  /** Creates an empty folder, or keeps that of an earlier attempt. @throws Error */
  create(name: string): Promise<string>;
  /** Deletes a folder with all that is in it, without following links. No error when it does not exist. @throws Error */
  remove(name: string): Promise<void>;
  /** Names of volumes' folders whose entries have not changed for so long. @param nowMs since the epoch */
  untouchedFor(ageMs: number, nowMs: number): Promise<string[]>;
  /** @returns false when the folder is not empty, or gone */
  removeEmpty(name: string): Promise<boolean>;
  space(): Promise<Space>;
}

export interface Space {
  readonly totalBytes: number;
  /** For those without privileges. */
  readonly freeBytes: number;
  readonly totalFiles: number;
  readonly freeFiles: number;
}

/** Containers of any user may write; the mode of the root folder keeps out other users of the machine. */
const volumeMode = 0o777;
const rootMode = 0o700;

/** @throws Error when the folder cannot be created, or others than root may write there */
export async function openFolders(path: string): Promise<Folders> {
  await mkdir(path, { recursive: true, mode: rootMode });
  const root = await realpath(path); // an administrator may have put a link to another disk
  const { uid, mode } = await lstat(root);
  if (uid !== process.getuid?.() || (mode & 0o022) !== 0) {
    throw new Error(`${root} must belong to the user of this process, and no one else may write there`);
  }
  await chmod(root, rootMode);
  const pathOf = (name: string): string => {
    if (name === "" || name.includes("/") || name.startsWith("."))
      throw new Error(`${JSON.stringify(name)} is not the name of a volume`);
    return join(root, name);
  };
  return {
    root,
    async create(name) {
      const folder = pathOf(name);
      await mkdir(folder).catch(async (err: NodeJS.ErrnoException) => {
        if (err.code !== "EEXIST" || !(await lstat(folder)).isDirectory()) throw err;
      });
      await chmod(folder, volumeMode); // mkdir's mode is subject to the umask
      return folder;
    },
    async remove(name) {
      const folder = pathOf(name);
      // rm opens each folder relative to its parent and follows no links, even if a process changes the tree meanwhile.
      await run("rm", ["-rf", "--one-file-system", "--", folder]);
      if (await exists(folder)) throw new Error(`${folder} is still there`);
    },
    async untouchedFor(ageMs, nowMs) {
      const names: string[] = [];
      for (const entry of await readdir(root, { withFileTypes: true })) {
        if (!entry.isDirectory() || !isVolumeName(entry.name)) continue;
        const age = await lstat(pathOf(entry.name)).then(
          ({ mtimeMs }) => nowMs - mtimeMs,
          () => 0, // removed meanwhile
        );
        if (age >= ageMs) names.push(entry.name);
      }
      return names;
    },
    removeEmpty: (name) =>
      rmdir(pathOf(name)).then(
        () => true,
        (err: NodeJS.ErrnoException) => {
          if (err.code === "ENOTEMPTY" || err.code === "EEXIST" || err.code === "ENOENT") return false;
          throw err;
        },
      ),
    async space() {
      const { bsize, blocks, bavail, files, ffree } = await statfs(root);
      return { totalBytes: blocks * bsize, freeBytes: bavail * bsize, totalFiles: files, freeFiles: ffree };
    },
  };
}

function exists(path: string): Promise<boolean> {
  return lstat(path).then(
    () => true,
    (err: NodeJS.ErrnoException) => {
      if (err.code === "ENOENT") return false;
      throw err;
    },
  );
}

function run(program: string, args: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: ["ignore", "ignore", "pipe"] });
    let text = "";
    child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
      if (text.length < 1_000) text += chunk;
    });
    child.once("error", reject);
    child.once("close", (code) =>
      code === 0 ? resolve() : reject(new Error(`${program}: ${text.trim().slice(0, 1_000) || `exit code ${code}`}`)),
    );
  });
}
