import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { editProjectFiles, freeProjects, projectOf, withoutProject, withProject } from "./project-files.ts";
import { openProjectQuotas, type ProjectQuotaOptions, type ProjectQuotas } from "./project-quotas.ts";

/**
 * Tracks directory usage with project quotas, so that directories need not be walked. Best effort: failures are logged, and
 * the caller falls back to walking.
 */
export interface FolderQuotas {
  /**
   * Puts the directory into a project. @param limited set a (practically unlimited) hard limit, otherwise only track usage;
   * the kubelet enforces size limits itself
   */
  assign(path: string, limited: boolean): Promise<void>;
  /** @returns undefined for a directory without a project */
  usage(path: string): Promise<{ bytes: number; inodes: number } | undefined>;
  /** Releases the directory's project; call before the directory is removed. */
  clear(path: string): Promise<void>;
}

interface FolderQuotaOptions extends ProjectQuotaOptions {
  /** Directory of `projects` and `projid`. */
  etc?: string;
  log: Logger;
}

/** Paths are passed as an unquoted word of a command and as a field in a file. */
const plainPath = /^[\w./~@+-]+$/;

/**
 * One project per directory. Assignments are kept in `/etc/projects`, so no other state survives a restart.
 * Source: pkg/volume/util/fsquota/quota_linux.go
 */
export function newFolderQuotas(options: FolderQuotaOptions): FolderQuotas {
  const { etc = "/etc", log } = options;
  const counted = new Map<string, { id: number; quotas: ProjectQuotas }>();
  /** Directories for which an assignment was attempted by this process. */
  const tried = new Set<string>();
  const oneAtATime = newQueue();

  async function assign(path: string, limited: boolean): Promise<void> {
    const quotas = plainPath.test(path) ? await openProjectQuotas(path, options) : undefined;
    if (quotas === undefined) return;
    const id = await editProjectFiles(etc, async (files) => {
      const known = projectOf(files, path);
      if (known !== undefined) return { files, result: known };
      for (const free of freeProjects(files)) {
        const { bytes, inodes } = await quotas.usage(free);
        if (bytes === 0 && inodes === 0) return { files: withProject(files, path, free), result: free };
      }
      throw new Error("no free project ID"); // unreachable: freeProjects throws before it is exhausted
    });
    try {
      await quotas.join(path, id, limited);
    } catch (err) {
      await editProjectFiles(etc, async (files) => ({ files: withoutProject(files, path, id), result: undefined }));
      throw err;
    }
    counted.set(path, { id, quotas });
    log.v(4)?.info("The file system counts what is in a folder", { path, project: id });
  }

  async function clear(path: string): Promise<void> {
    const quotas = counted.get(path)?.quotas ?? (plainPath.test(path) ? await openProjectQuotas(path, options) : undefined);
    if (quotas === undefined) return;
    await editProjectFiles(etc, async (files) => {
      const id = projectOf(files, path);
      if (id === undefined) return { files, result: undefined };
      await quotas.release(id).catch((err: Error) => log.warn("Failed to clear a quota", { path, reason: err.message }));
      return { files: withoutProject(files, path, id), result: undefined };
    });
  }

  return {
    async assign(path, limited) {
      if (tried.has(path)) return;
      tried.add(path);
      await oneAtATime(() => assign(path, limited)).catch((err: Error) => {
        log.warn("Cannot measure a folder with quotas of its file system", { path, reason: err.message });
      });
    },
    async usage(path) {
      const found = counted.get(path);
      if (found === undefined) return undefined;
      return oneAtATime(() => found.quotas.usage(found.id)).catch((err: Error) => {
        log.v(3)?.info("The file system does not report the usage of a folder", { path, reason: err.message });
        return undefined;
      });
    },
    async clear(path) {
      await oneAtATime(() => clear(path)).catch((err: Error) => {
        log.warn("Failed to clear quota", { path, reason: err.message });
      });
      tried.delete(path);
      counted.delete(path);
    },
  };
}

/** Serializes access to the files and to project IDs. */
function newQueue(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (work) => {
    const next = last.then(work);
    last = next.catch(() => undefined);
    return next;
  };
}
