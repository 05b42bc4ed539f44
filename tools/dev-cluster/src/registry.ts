import { existsSync, lstatSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeFolderSync } from "@coxswain/apimachinery/files/make-folder";
import { readRecord } from "./cluster-record.ts";
import { Failure } from "./failure.ts";
import { withLock } from "./lock.ts";
import type { Choices, Settings } from "./settings.ts";

/** One cluster of this machine, as others need to know it. */
export interface RegisteredCluster extends Choices {
  readonly id: string;
  readonly name: string;
  readonly root: string;
  readonly state: string;
}

/**
 * Folder of what is known of all clusters on this machine: those of root in /run, those of another user in a folder of their own.
 * A restart of the machine clears it; each cluster's own record stays with its data.
 */
export function registryFolder(env: NodeJS.ProcessEnv = process.env): string {
  if (env["COX_REGISTRY"]) return env["COX_REGISTRY"];
  const uid = process.getuid?.() ?? 0;
  return uid === 0 ? "/run/coxswain" : join(env["XDG_RUNTIME_DIR"] || "/tmp", `coxswain-${uid}`);
}

/**
 * Runs `work` while no other cluster of this machine decides on its ports and networks.
 * @param work gets all clusters that are there
 */
export async function withRegistry<T>(
  signal: AbortSignal,
  work: (clusters: readonly RegisteredCluster[]) => Promise<T>,
  folder = registryFolder(),
): Promise<T> {
  try {
    makeFolderSync(folder, process.getuid?.() === 0 ? 0o755 : 0o700);
    // Anybody may have made a folder of this name in /tmp.
    if (lstatSync(folder).uid !== process.getuid?.()) throw new Error("it belongs to another user");
  } catch (err) {
    throw new Failure(`cannot use ${folder}, where the clusters of this machine are kept: ${(err as Error).message}`);
  }
  return withLock(join(folder, "lock"), "up", "the list of clusters", () => work(readRegistry(folder)), {
    waitMs: 60_000,
    signal,
    onWait: () => {}, // a decision takes no time worth a word
  });
}

/** @returns all clusters whose data is still there. */
export function readRegistry(folder = registryFolder()): RegisteredCluster[] {
  const folders = new Set([folder, ...(folder === registryFolder({}) ? ["/run/coxswain"] : [])]);
  return [...folders].flatMap((each) =>
    (existsSync(each) ? readdirSync(each) : [])
      .filter((file) => file.endsWith(".json"))
      .flatMap((file) => readEntry(join(each, file))),
  );
}

function readEntry(file: string): RegisteredCluster[] {
  let cluster: RegisteredCluster;
  try {
    cluster = JSON.parse(readFileSync(file, "utf8")) as RegisteredCluster;
  } catch {
    return []; // removed or replaced meanwhile
  }
  try {
    return readRecord(cluster.state) === undefined ? [] : [cluster];
  } catch {
    return [cluster]; // of another user, whose files we may not read
  }
}

/** Call it under `withRegistry`. Also forgets clusters whose data is gone. */
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

/** Forgets a cluster whose data was removed. */
export const unregister = (id: string, folder = registryFolder()): void => rmSync(join(folder, `${id}.json`), { force: true });
