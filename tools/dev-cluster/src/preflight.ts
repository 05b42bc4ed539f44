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
    const [code, message] = [errorCode(err), messageOf(err)];
    const owner = ownerOf(state);
    const remedy =
      code === "EROFS"
        ? "it is on a read-only file system; work in a clone elsewhere, or set COX_STATE to a folder elsewhere"
        : code === "EACCES" && owner !== undefined && owner !== process.getuid?.()
          ? `it belongs to another user (uid ${owner}); make a clone of your own`
          : message;
    throw new Failure(`cannot write to ${state}: ${remedy}`);
  }
  const disk = statfsSync(state);
  const freeMiB = Math.floor((disk.bavail * disk.bsize) / (1 << 20));
  if (freeMiB < neededMiB) throw new Failure(`the disk of ${state} has ${freeMiB} MiB left; ${neededMiB} MiB are needed`);
}

/**
 * Checks that the current user owns the cluster in a folder.
 * @throws Failure naming the owner
 */
export function checkOwner(state: string, verb: string): void {
  const user = process.getuid?.();
  const owner = ownerOf(state);
  if (owner === undefined || user === 0 || owner === user) return;
  const name = owner === 0 ? "root" : `uid ${owner}`;
  throw new Failure(`the cluster in ${state} belongs to ${name}, not to ${nameOfUser()}; use it as ${name}: sudo ./cox ${verb}`);
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
