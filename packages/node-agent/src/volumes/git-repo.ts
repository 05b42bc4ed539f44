import { execFile } from "node:child_process";
import { readdir, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join, normalize } from "node:path";
import type { GitRepoVolumeSource } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { makeFolder } from "@coxswain/apimachinery/process/files/make-folder";
import { removeTree } from "../resources/user-files.ts";
import { openDir } from "./empty-dir.ts";
import { setVolumeOwnership } from "./ownership.ts";
import { pluginOf } from "./volume-operations.ts";
import type { VolumePlugin } from "./volume-plugin.ts";

/** Scratch space with a clone of a Git repository, made once by the host's git. Source: pkg/volume/git_repo */
export const gitRepo: VolumePlugin = {
  name: "kubernetes.io~git-repo",
  supports: (volume) => volume.gitRepo !== undefined,
  async setUp({ pod, volume, isThere, dir, operations, log }) {
    const source = volume.gitRepo ?? { repository: "" };
    check(source);
    const ready = readyFile(dir);
    if (isThere || (await exists(ready))) return { path: dir, readOnly: false };
    await removeTree(dir); // left over from an interrupted attempt
    await openDir(dir);
    const own = (): Promise<void> =>
      setVolumeOwnership(dir, pod, { readOnly: false, policy: false, plugin: pluginOf(volume), operations, log });
    await own();
    await clone(source, dir);
    if (source.revision) await own();
    await makeFolder(dirname(ready));
    await writeFile(ready, "");
    return { path: dir, readOnly: false };
  },
};

/** The file that marks a finished clone: `<pod>/plugins/kubernetes.io~git-repo/<volume>/ready`, where containers cannot write. */
function readyFile(dir: string): string {
  return join(dirname(dirname(dirname(dir))), "plugins", gitRepo.name, basename(dir), "ready");
}

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );

/** Directory of the clone relative to the volume; `.` for the volume itself. */
const folderOf = (directory: string): string => normalize(directory).replace(/\/$/, "");

/** @throws Error for values that git would take for an option, and for a checkout in a directory whose contents the repository controls */
function check({ repository, revision = "", directory = "" }: GitRepoVolumeSource): void {
  for (const [name, value] of Object.entries({ repository, revision, directory }))
    if (value.startsWith("-")) throw new Error(`${JSON.stringify(value)} is an invalid value for ${name}`);
  // Hooks of a repository whose work tree is named .git would run on the host (CVE-2024-10220).
  if (revision !== "" && folderOf(directory).includes("/"))
    throw new Error(`${JSON.stringify(directory)} is not a valid directory, it must not contain a directory separator`);
}

async function clone({ repository, revision = "", directory = "" }: GitRepoVolumeSource, dir: string): Promise<void> {
  await git(dir, ["clone", "--", repository, ...(directory === "" ? [] : [directory])]);
  if (revision === "") return;
  const names = await readdir(dir);
  const isHere = directory !== "" && folderOf(directory) === ".";
  if (!isHere && names.length !== 1) throw new Error(`unexpected directory contents: [${names.join(" ")}]`);
  const work = isHere ? dir : join(dir, names[0]!);
  await git(work, ["checkout", revision]);
  await git(work, ["reset", "--hard"]);
}

const mostMs = 10 * 60_000;

/** Environment for git that excludes local repositories (`file`), programs as transports (`ext`), and password prompts. */
const environment = { GIT_ALLOW_PROTOCOL: "git:http:https:ssh", GIT_TERMINAL_PROMPT: "0" };

/** @throws Error with what git printed */
function git(cwd: string, args: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    execFile("git", args, { cwd, timeout: mostMs, env: { ...process.env, ...environment } }, (err, stdout, stderr) => {
      if (err === null) return resolve();
      const why = typeof err.code === "number" ? `exit status ${err.code}` : err.message;
      reject(new Error(`failed to exec 'git ${args.join(" ")}': ${stdout}${stderr}: ${why}`));
    });
  });
}
