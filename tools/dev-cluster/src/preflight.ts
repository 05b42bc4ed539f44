import { accessSync, constants, existsSync, statfsSync, statSync } from "node:fs";
import { userInfo } from "node:os";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { makeFolderSync } from "@coxswain/apimachinery/process/files/make-folder";
import { errorCode } from "@coxswain/apimachinery/process/narrowing/error-code";
import { Failure } from "./failure.ts";

const neededMiB = 512;

/** Checks that a cluster can use this folder. @throws Failure with the reason */
export function checkFolder(state: string): void {
  try {
    makeFolderSync(state, 0o711);
    accessSync(state, constants.W_OK);
  } catch (err) {
    throw new Failure(`cannot write to ${state}: ${whyNotWritable(err, ownerOf(state), process.getuid?.())}`);
  }
  const problem = diskProblem(state, statfsSync(state));
  if (problem !== undefined) throw new Failure(problem);
}

/** Pure: the remedy where there is one, else the error's own text. @param owner of the folder; undefined: unknown */
export function whyNotWritable(err: unknown, owner: number | undefined, user: number | undefined): string {
  const code = errorCode(err);
  if (code === "EROFS")
    return "it is on a read-only file system; work in a clone elsewhere, or set COX_STATE to a folder elsewhere";
  if (code === "EACCES" && owner !== undefined && owner !== user)
    return `it belongs to another user (uid ${owner}); make a clone of your own`;
  return messageOf(err);
}

/** Pure: undefined when enough of a disk is free. @param disk bavail: free blocks for users who are not root; bsize: bytes in one */
export function diskProblem(state: string, { bavail, bsize }: { bavail: number; bsize: number }): string | undefined {
  const freeMiB = Math.floor((bavail * bsize) / (1 << 20));
  return freeMiB < neededMiB ? `the disk of ${state} has ${freeMiB} MiB left; ${neededMiB} MiB are needed` : undefined;
}

/**
 * Checks that the current user owns the cluster in a folder.
 * @throws Failure naming the owner
 */
export function checkOwner(state: string, verb: string): void {
  const problem = ownerProblem(state, verb, ownerOf(state), process.getuid?.());
  if (problem !== undefined) throw new Failure(problem);
}

/** Pure: undefined when `user` may use the cluster in `state`: root, its owner, or anyone where its owner is unknown. */
export function ownerProblem(
  state: string,
  verb: string,
  owner: number | undefined,
  user: number | undefined,
): string | undefined {
  if (owner === undefined || user === 0 || owner === user) return undefined;
  const name = owner === 0 ? "root" : `uid ${owner}`;
  const as = owner === 0 ? "sudo" : `sudo -u '#${owner}'`;
  return `the cluster in ${state} belongs to ${name}, not to ${nameOfUser()}; use it as ${name}: ${as} ./cox ${verb}`;
}

function ownerOf(path: string): number | undefined {
  try {
    for (let at = path; ; at = at.slice(0, at.lastIndexOf("/"))) if (existsSync(at) || at === "") return statSync(at || "/").uid;
  } catch {
    return undefined;
  }
}

function nameOfUser(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.()}`; // no entry in /etc/passwd
  }
}
