import { X509Certificate } from "node:crypto";
import {
  chmodSync,
  chownSync,
  closeSync,
  fsyncSync,
  lstatSync,
  openSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeSync,
} from "node:fs";
import { basename, dirname, isAbsolute } from "node:path";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { makeFolderSync } from "@coxswain/apimachinery/process/files/make-folder";
import { errorCode } from "@coxswain/apimachinery/process/narrowing/error-code";

/** An error that the user can fix; one or more lines, each with file and remedy. */
export class PkiError extends Error {}

/** @returns the text, or undefined when the file does not exist */
export function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (err) {
    if (errorCode(err) === "ENOENT") return undefined;
    throw new PkiError(`cannot read ${path}: ${messageOf(err)}`);
  }
}

/**
 * Replaces a file atomically, also with respect to a machine crash. An existing file keeps its mode and owner; for a symbolic
 * link its target is replaced.
 */
export function writeWhole(path: string, text: string, mode: number): void {
  const before = statOf(path);
  const target = before === undefined ? path : fileBehind(path);
  // Not join(), which would take `..` for the folder above a link to a folder.
  const temporary = `${dirname(target)}/.${basename(target)}.${process.pid}.new`;
  try {
    makeFolderSync(dirname(target));
    const file = openSync(temporary, "wx", mode);
    try {
      writeSync(file, text);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    if (before !== undefined) {
      if (process.getuid?.() === 0) chownSync(temporary, before.uid, before.gid);
      chmodSync(temporary, before.mode & 0o777);
    }
    renameSync(temporary, target);
  } catch (err) {
    rmSync(temporary, { force: true });
    throw new PkiError(`cannot write ${path}: ${messageOf(err)}`);
  }
  syncFolder(dirname(target));
}

/** @returns undefined when the path or its link target does not exist */
function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (err) {
    throw new PkiError(`cannot write ${path}: ${messageOf(err)}`); // such as a cycle of links
  }
}

/**
 * Follows links of the last path component only. `realpath` would resolve /proc/<pid>/root, the root of a process in another
 * mount namespace, to `/`.
 */
function fileBehind(path: string): string {
  let file = path;
  // The kernel's own limit of links, which stat has already followed; the links may change in the meantime.
  for (let links = 0; links <= 40; links++) {
    if (!lstatSync(file).isSymbolicLink()) return file;
    const target = readlinkSync(file);
    file = isAbsolute(target) ? target : `${dirname(file)}/${target}`;
  }
  throw new PkiError(`cannot write ${path}: too many symbolic links`);
}

function syncFolder(folder: string): void {
  const handle = openSync(folder, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

/** @returns undefined when the text is not a certificate. */
export function parseCertificate(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(pem);
  } catch {
    return undefined;
  }
}

/** Whether the certificate was issued and signed by the authority. */
export const isSignedBy = (certificate: X509Certificate, authority: X509Certificate): boolean =>
  certificate.checkIssued(authority) && certificate.verify(authority.publicKey);

/** The certificates of a bundle, each in PEM form. */
export const certificatesIn = (text: string): string[] =>
  [...text.matchAll(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g)]
    .map(([pem]) => pem)
    .filter((pem) => parseCertificate(pem) !== undefined)
    .map((pem) => `${pem}\n`);
