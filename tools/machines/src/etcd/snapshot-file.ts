/** Snapshot files: etcd's database and its SHA-256, as `etcdctl snapshot save` writes them; optionally encrypted. */

import { type CipherGCM, createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";
import { closeSync, fsyncSync, openSync, readSync, renameSync, rmSync, statSync, writeSync } from "node:fs";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { Failure } from "../failure.ts";

const digestBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;
const pieceBytes = 1 << 20;
/** First bytes of an encrypted file; a bbolt database begins with zeros. */
const magic = Buffer.from("coxswain-snapshot-aes-256-gcm-1\n");

/** Writes a snapshot to a temporary file and renames it when it is complete. The file is readable by its owner only. */
export class SnapshotWriter {
  readonly #path: string;
  readonly #temporary: string;
  readonly #file: number;
  readonly #cipher: CipherGCM | undefined;
  readonly #check = new DigestCheck();

  /** @param key 32 bytes; undefined: the file is not encrypted */
  constructor(path: string, key: Buffer | undefined) {
    this.#path = path;
    this.#temporary = `${path}.part`;
    rmSync(this.#temporary, { force: true });
    this.#file = openSync(this.#temporary, "wx", 0o600);
    if (key === undefined) return;
    const nonce = randomBytes(nonceBytes);
    this.#cipher = createCipheriv("aes-256-gcm", key, nonce);
    writeSync(this.#file, Buffer.concat([magic, nonce]));
  }

  write(piece: Uint8Array): void {
    this.#check.push(piece);
    this.#put(this.#cipher === undefined ? piece : this.#cipher.update(piece));
  }

  /** @returns the size of the snapshot @throws Failure when it is incomplete or its digest differs */
  finish(): number {
    if (!this.#check.isWhole()) {
      this.abandon();
      throw new Failure("the snapshot from etcd is incomplete: checksum mismatch");
    }
    if (this.#cipher !== undefined) {
      this.#put(this.#cipher.final());
      this.#put(this.#cipher.getAuthTag());
    }
    fsyncSync(this.#file);
    closeSync(this.#file);
    renameSync(this.#temporary, this.#path);
    return this.#check.size;
  }

  abandon(): void {
    closeSync(this.#file);
    rmSync(this.#temporary, { force: true });
  }

  #put(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) at += writeSync(this.#file, bytes, at);
  }
}

export interface SnapshotInfo {
  readonly sizeBytes: number;
  readonly isSealed: boolean;
  /** Its checksum, hexadecimal: the same for encrypted and unencrypted copies. */
  readonly digest: string;
}

/**
 * Reads a snapshot to its end and verifies it.
 * @param key needed for an encrypted one
 * @param take called with each piece of the decrypted snapshot
 * @throws Failure with the reason
 */
export function readSnapshot(path: string, key: Buffer | undefined, take: (piece: Buffer) => void = () => {}): SnapshotInfo {
  const file = open(path);
  try {
    const size = statSync(path).size;
    const head = readAt(file, 0, magic.length);
    const isSealed = head.equals(magic);
    if (isSealed && key === undefined) throw new Failure(`${path} is encrypted: pass --key-file`);
    const check = new DigestCheck();
    const next = (piece: Buffer): void => {
      check.push(piece);
      take(piece);
    };
    if (isSealed) unseal(file, size, key!, next, path);
    else for (let at = 0; at < size; at += pieceBytes) next(readAt(file, at, Math.min(pieceBytes, size - at)));
    if (!check.isWhole()) throw new Failure(`${path} is an incomplete or damaged snapshot: checksum mismatch`);
    return { sizeBytes: check.size, isSealed, digest: check.digest };
  } finally {
    closeSync(file);
  }
}

function unseal(file: number, size: number, key: Buffer, next: (piece: Buffer) => void, path: string): void {
  const end = size - tagBytes;
  const nonce = readAt(file, magic.length, nonceBytes);
  const decipher = createDecipheriv("aes-256-gcm", key, nonce, { authTagLength: tagBytes });
  for (let at = magic.length + nonceBytes; at < end; at += pieceBytes)
    next(decipher.update(readAt(file, at, Math.min(pieceBytes, end - at))));
  try {
    decipher.setAuthTag(readAt(file, end, tagBytes));
    next(decipher.final());
  } catch {
    throw new Failure(`${path} cannot be decrypted with this key, or is damaged`);
  }
}

/** Compares the last 32 bytes with the SHA-256 of those before. */
class DigestCheck {
  readonly #hash = createHash("sha256");
  /** The last bytes received; the digest at the end of the file. */
  #tail = Buffer.alloc(0);
  size = 0;

  push(piece: Uint8Array): void {
    this.size += piece.length;
    const all = Buffer.concat([this.#tail, piece]);
    const known = Math.max(0, all.length - digestBytes);
    this.#hash.update(all.subarray(0, known));
    this.#tail = all.subarray(known);
  }

  get digest(): string {
    return this.#tail.toString("hex");
  }

  isWhole(): boolean {
    return this.#hash.digest().equals(this.#tail);
  }
}

function open(path: string): number {
  try {
    return openSync(path, "r");
  } catch (err) {
    throw new Failure(`cannot read ${path}: ${messageOf(err)}`);
  }
}

function readAt(file: number, at: number, length: number): Buffer {
  const buffer = Buffer.alloc(Math.max(0, length));
  const read = readSync(file, buffer, 0, buffer.length, at);
  return buffer.subarray(0, read);
}
