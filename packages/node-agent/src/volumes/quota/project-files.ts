import { type FileHandle, lstat, open, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { lockOpenFile } from "../../host/lock-file.ts";

/** What the two files say, a line each; lines that are not understood stay. */
export interface ProjectFiles {
  /** `1048577:/var/lib/kubelet/pods/…`: folders and the project they are in. */
  projects: readonly string[];
  /** `volume1048577:1048577`: names of projects. */
  projid: readonly string[];
}

/** Project ids below are for people. Source: pkg/volume/util/fsquota/common */
export const firstProject = 1_048_577;
const mostTries = 128;

/** Pure: the project that a folder is in. */
export function projectOf({ projects }: ProjectFiles, path: string): number | undefined {
  const line = projects.find((text) => text.endsWith(`:${path}`) && /^\d{1,10}:/.test(text));
  return line?.slice(line.indexOf(":") + 1) === path ? Number.parseInt(line, 10) : undefined;
}

/**
 * Ids that may be given to a new folder: in neither file. Whether the file system knows one is for it to say.
 * @throws Error after as many as may be tried
 */
export function* freeProjects({ projects, projid }: ProjectFiles): Generator<number> {
  const taken = new Set([...projects.map((line) => line.split(":")[0]), ...projid.map((line) => line.split(":").at(-1))]);
  let tries = 0;
  for (let id = firstProject; ; id++) {
    if (taken.has(String(id))) continue;
    if (++tries > mostTries) throw new Error("cannot find available quota ID");
    yield id;
  }
}

/** Pure. */
export const withProject = ({ projects, projid }: ProjectFiles, path: string, id: number): ProjectFiles => ({
  projects: [...projects, `${id}:${path}`],
  projid: [...projid, `volume${id}:${id}`],
});

/** Pure: without the folder, and without its project when it was the last in it. */
export function withoutProject(files: ProjectFiles, path: string, id: number): ProjectFiles {
  const projects = files.projects.filter((line) => line !== `${id}:${path}`);
  const isLast = !projects.some((line) => line.startsWith(`${id}:`));
  return { projects, projid: isLast ? files.projid.filter((line) => line.split(":").at(-1) !== String(id)) : files.projid };
}

/**
 * Changes `projects` and `projid` of a folder (`/etc`) while nobody else does. Each is replaced as a whole.
 * @param change gives the files back that it got, where nothing is to be changed
 * @throws Error for files that are none (links, folders)
 * Source: pkg/volume/util/fsquota/project.go
 */
export async function editProjectFiles<T>(
  etc: string,
  change: (files: ProjectFiles) => Promise<{ files: ProjectFiles; result: T }>,
): Promise<T> {
  const names = ["projects", "projid"] as const;
  const handles: FileHandle[] = [];
  try {
    for (const name of names) {
      await refuseOthers(join(etc, name));
      const handle = await open(join(etc, name), "a+", 0o644);
      handles.push(handle);
      await lockOpenFile(handle);
    }
    const before = { projects: await linesOf(join(etc, "projects")), projid: await linesOf(join(etc, "projid")) };
    const { files, result } = await change(before);
    // Names first: a folder in a project without a name is worse than the other way round.
    for (const name of names.toReversed()) if (files[name] !== before[name]) await replace(join(etc, name), files[name]);
    return result;
  } finally {
    for (const handle of handles) await handle.close();
  }
}

async function refuseOthers(path: string): Promise<void> {
  const info = await lstat(path).catch(() => undefined);
  if (info !== undefined && !info.isFile()) throw new Error(`${path} exists but is not a plain file, cannot continue`);
}

async function linesOf(path: string): Promise<string[]> {
  return (await readFile(path, "utf8")).split("\n").filter((line) => line !== "");
}

async function replace(path: string, lines: readonly string[]): Promise<void> {
  const { mode } = await lstat(path);
  const temporary = `${path}.kubelet`;
  await writeFile(temporary, lines.map((line) => `${line}\n`).join(""), { mode: mode & 0o777 });
  await rename(temporary, path);
}
