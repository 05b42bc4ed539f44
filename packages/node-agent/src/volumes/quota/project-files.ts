import { type FileHandle, lstat, open, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { lockOpenFile } from "../../host/lock-file.ts";

/** Lines of the two files. Lines that cannot be parsed are preserved. */
interface ProjectFiles {
  /** `1048577:/var/lib/kubelet/pods/…`: directories and their project. */
  projects: readonly string[];
  /** `volume1048577:1048577`: names of projects. */
  projid: readonly string[];
}

/** Lower project IDs are left to administrators. Source: pkg/volume/util/fsquota/common */
export const firstProject = 1_048_577;
const mostTries = 128;

/** Pure: the project of a directory. */
export function projectOf({ projects }: ProjectFiles, path: string): number | undefined {
  const line = projects.find((text) => text.endsWith(`:${path}`) && /^\d{1,10}:/.test(text));
  return line?.slice(line.indexOf(":") + 1) === path ? Number.parseInt(line, 10) : undefined;
}

/**
 * Candidate IDs for a new project: those in neither file. The file system may still have usage recorded for them.
 * @throws Error after too many candidates
 */
export function* freeProjects({ projects, projid }: ProjectFiles): Generator<number> {
  const taken = new Set([...projects.map((line) => line.split(":")[0]), ...projid.map((line) => line.split(":").at(-1))]);
  let tries = 0;
  for (let id = firstProject; ; id++) {
    if (taken.has(String(id))) continue;
    yield id;
    if (++tries > mostTries) throw new Error("cannot find available quota ID");
  }
}

/** Pure: adds a directory and its project. */
export const withProject = ({ projects, projid }: ProjectFiles, path: string, id: number): ProjectFiles => ({
  projects: [...projects, `${id}:${path}`],
  projid: [...projid, `volume${id}:${id}`],
});

/** Pure: removes a directory, and its project when no other directory is in it. */
export function withoutProject(files: ProjectFiles, path: string, id: number): ProjectFiles {
  const projects = files.projects.filter((line) => line !== `${id}:${path}`);
  const isLast = !projects.some((line) => line.startsWith(`${id}:`));
  return { projects, projid: isLast ? files.projid.filter((line) => line.split(":").at(-1) !== String(id)) : files.projid };
}

/**
 * Edits `projects` and `projid` in `etc` under file locks. Each file is replaced atomically.
 * @param change returns its argument unchanged to leave the files as they are
 * @throws Error when a file is not a regular file
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
    // `projid` first: a project name without directories is harmless, a directory in an unnamed project is not.
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
