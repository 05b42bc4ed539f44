import { existsSync, lstatSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { makeFolderSync } from "@coxswain/apimachinery/process/files/make-folder";
import { readRecord } from "./cluster-record.ts";
import { Failure } from "./failure.ts";
import { withLock } from "./lock.ts";
import type { Choices, Settings } from "./settings.ts";

/** A cluster of this machine, as visible to other clusters. */
export interface RegisteredCluster extends Choices {
  readonly id: string;
  readonly name: string;
  readonly root: string;
  readonly state: string;
}

/**
 * Folder of the machine-wide cluster registry: /run for root, a per-user folder otherwise. A reboot clears it; the record of
 * each cluster remains with its data.
 */
export function registryFolder(env: NodeJS.ProcessEnv = process.env, uid = process.getuid?.() ?? 0): string {
  if (env["COX_REGISTRY"]) return env["COX_REGISTRY"];
  return uid === 0 ? "/run/coxswain" : join(env["XDG_RUNTIME_DIR"] || "/tmp", `coxswain-${uid}`);
}

/**
 * Runs `work` while holding the registry lock, so that only one cluster at a time chooses ports and networks.
 * @param work receives all registered clusters
 */
export async function withRegistry<T>(
  signal: AbortSignal,
  work: (clusters: readonly RegisteredCluster[]) => Promise<T>,
  folder = registryFolder(),
): Promise<T> {
  try {
    makeFolderSync(folder, process.getuid?.() === 0 ? 0o755 : 0o700);
    // In /tmp, another user could have created a folder of this name.
    if (lstatSync(folder).uid !== process.getuid?.()) throw new Error("it belongs to another user");
  } catch (err) {
    throw new Failure(`cannot use ${folder}, where the clusters of this machine are kept: ${messageOf(err)}`);
  }
  return withLock(join(folder, "lock"), "up", "the list of clusters", () => work(readRegistry(folder)), {
    waitMs: 60_000,
    signal,
    onWait: () => {}, // decisions are too short to report waiting
  });
}

/** The folder, and root's where it is the usual one of a user: its clusters have ports and networks of this machine, too. */
export function foldersRead(folder: string, env = process.env, uid = process.getuid?.() ?? 0): string[] {
  const isUsual = folder === registryFolder({ ...env, COX_REGISTRY: "" }, uid);
  return [...new Set([folder, ...(isUsual ? [registryFolder({}, 0)] : [])])];
}

/** @returns all registered clusters whose data still exist. */
export function readRegistry(folder = registryFolder()): RegisteredCluster[] {
  return foldersRead(folder).flatMap((each) =>
    (existsSync(each) ? readdirSync(each) : [])
      .filter((file) => file.endsWith(".json"))
      .flatMap((file) => readEntry(join(each, file))),
  );
}

function readEntry(file: string): RegisteredCluster[] {
  let cluster: RegisteredCluster;
  try {
    cluster = JSON.parse(readFileSync(file, "utf8")) as RegisteredCluster; // cast: written by this program
  } catch {
    return []; // removed or replaced concurrently
  }
  try {
    return readRecord(cluster.state) === undefined ? [] : [cluster];
  } catch {
    return [cluster]; // owned by another user and unreadable
  }
}

/** Registers a cluster and drops those whose data are gone. The caller holds the lock of `withRegistry`. */
export function register(settings: Settings, choices: Choices, folder = registryFolder()): void {
  const { id, name, root, state, withNode } = settings;
  const entry: RegisteredCluster = { ...choices, withNode, id, name, root, state };
  const partial = join(folder, `${id}.new`);
  writeFileSync(partial, JSON.stringify(entry), { mode: 0o644 });
  renameSync(partial, join(folder, `${id}.json`));
  const known = new Set(readRegistry(folder).map((cluster) => `${cluster.id}.json`));
  for (const file of readdirSync(folder)) {
    if (file.endsWith(".json") && file !== `${id}.json` && !known.has(file)) rmSync(join(folder, file), { force: true });
  }
}

/** Unregisters a cluster whose data were removed. */
export const unregister = (id: string, folder = registryFolder()): void => rmSync(join(folder, `${id}.json`), { force: true });
