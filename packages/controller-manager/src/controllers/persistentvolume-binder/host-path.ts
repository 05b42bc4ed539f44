import { randomUUID } from "node:crypto";
import { realpath, rm } from "node:fs/promises";
import { basename, dirname, join, normalize } from "node:path";
import { makeFolder } from "@coxswain/apimachinery/process/files/make-folder";
import { errorCode } from "@coxswain/apimachinery/process/narrowing/error-code";

/** Provisioning of hostPath volumes on the local machine, for single-node test clusters. */

/**
 * Creates an empty directory.
 * @returns its path
 */
export async function createFolder(): Promise<string> {
  const path = join("/tmp/hostpath_pv", randomUUID());
  await makeFolder(path, 0o750);
  return path;
}

/**
 * Deletes the path, but only below /tmp and never through a symbolic link that leads out of it (upstream matches
 * `/tmp/` anywhere in the path).
 * @throws Error with upstream's text for other paths
 */
export async function deleteFolder(path: string): Promise<void> {
  const refuse = (): Error => new Error(`host_path deleter only supports /tmp/.+ but received provided ${path}`);
  const wanted = normalize(path);
  if (!wanted.startsWith("/tmp/")) throw refuse();
  let parent: string;
  try {
    parent = await realpath(dirname(wanted));
  } catch (err) {
    if (errorCode(err) === "ENOENT") return;
    throw err;
  }
  if (!isInTmp(parent)) throw refuse();
  await rm(join(parent, basename(wanted)), { recursive: true, force: true });
}

/** Whether a folder is /tmp or below it. @param folder without symbolic links */
export const isInTmp = (folder: string): boolean => folder === "/tmp" || folder.startsWith("/tmp/");
