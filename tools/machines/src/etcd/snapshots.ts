/** A folder of snapshots: file names, selection of those to keep, and contents. */

import { readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { makeFolderSync } from "@coxswain/apimachinery/process/files/make-folder";
import { errorCode } from "@coxswain/apimachinery/process/narrowing/error-code";
import { Failure } from "../failure.ts";
import type { EtcdClient } from "./client.ts";
import { SnapshotWriter } from "./snapshot-file.ts";

export const defaultFolder = "/var/lib/coxswain/etcd-snapshots";

const nameForm = /^etcd-(.+)-(\d{8}T\d{6}Z)\.db$/;

/** `etcd-m1-20260102T030405Z.db` */
export const snapshotName = (machine: string, nowMs: number): string =>
  `etcd-${machine}-${new Date(nowMs).toISOString().replaceAll(/[-:]|\.\d+/g, "")}.db`;

/** Pure: the names to remove so that the newest `keep` of a machine stay. Files of other names are never removed. */
export function surplus(names: readonly string[], machine: string, keep: number): string[] {
  const own = names.filter((name) => nameForm.exec(name)?.[1] === machine).sort();
  return own.slice(0, Math.max(0, own.length - keep));
}

interface SnapshotEntry {
  readonly path: string;
  readonly sizeBytes: number;
  readonly modifiedMs: number;
}

/** Newest first. @returns [] when the folder is missing */
export function listSnapshots(folder: string): SnapshotEntry[] {
  let names: string[];
  try {
    names = readdirSync(folder);
  } catch (err) {
    if (errorCode(err) === "ENOENT") return [];
    throw new Failure(`cannot read ${folder}: ${messageOf(err)}`);
  }
  return names
    .filter((name) => name.endsWith(".db"))
    .map((name) => {
      const { size, mtimeMs } = statSync(join(folder, name));
      return { path: join(folder, name), sizeBytes: size, modifiedMs: mtimeMs };
    })
    .sort((a, b) => b.modifiedMs - a.modifiedMs);
}

interface SaveOptions {
  readonly client: EtcdClient;
  readonly path: string;
  readonly key: Buffer | undefined;
}

/** @returns the size of the snapshot; the file is complete and verified, or does not exist @throws Failure */
export async function saveSnapshot({ client, path, key }: SaveOptions): Promise<number> {
  makeFolderSync(join(path, ".."), 0o700);
  const writer = new SnapshotWriter(path, key);
  try {
    await client.snapshot((piece) => writer.write(piece));
  } catch (err) {
    writer.abandon();
    throw err;
  }
  return writer.finish();
}

/** @returns the paths that were removed */
export function removeSurplus(folder: string, machine: string, keep: number): string[] {
  const paths = surplus(readdirSync(folder), machine, keep).map((name) => join(folder, name));
  for (const path of paths) rmSync(path, { force: true });
  return paths;
}
