import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import type { ConfigMap } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { makeFolderSync } from "@coxswain/apimachinery/process/files/make-folder";
import { type ConfigSource, decodeSource, encodeSource, showSource } from "./config-source.ts";

/** `assigned` is the configuration the cluster wants; `last-known-good` the fallback, which was in use for the trial period. */
type Slot = "assigned" | "last-known-good";

/** Local copies of the cluster's configurations; each contains the files of its config map. */
export interface Checkpoints {
  /** @returns undefined for the local configuration. @throws Error when the slot cannot be read */
  read(slot: Slot): ConfigSource | undefined;
  write(slot: Slot, source: ConfigSource | undefined): void;
  /** Time of the last write to the slot, in ms since the epoch. */
  writtenAt(slot: Slot): number;
  /** Clears both slots; true when a configuration was assigned. */
  reset(): boolean;
  has(source: ConfigSource): boolean;
  save(map: ConfigMap): void;
  /** Path of the configuration file. @throws Error when there is no checkpoint of the source */
  fileOf(source: ConfigSource): string;
}

/**
 * Below `--dynamic-config-dir`: `store/meta/<slot>` and `store/checkpoints/<uid>/<resourceVersion>/<key>`. Writes are atomic
 * and synced to disk, because the agent restarts to use them.
 * Source: pkg/kubelet/kubeletconfig/checkpoint/store/fsstore.go
 */
export function openCheckpoints(dynamicConfigDir: string, clock: Clock): Checkpoints {
  const store = join(dynamicConfigDir, "store");
  const slotFile = (slot: Slot): string => join(store, "meta", slot);
  const folderOf = (uid: string, resourceVersion: string): string =>
    join(store, "checkpoints", pathPart(uid), pathPart(resourceVersion));
  const has = ({ configMap }: ConfigSource): boolean => isFolder(folderOf(configMap.uid, configMap.resourceVersion));

  for (const folder of ["meta", "checkpoints"]) makeFolderSync(join(store, folder), 0o755);

  function write(slot: Slot, source: ConfigSource | undefined): void {
    const path = slotFile(slot);
    const temporary = join(dirname(path), `tmp_${slot}`);
    writeDurably(temporary, source === undefined ? "" : encodeSource(source));
    // The trial period is measured with the same clock.
    utimesSync(temporary, clock.now() / 1000, clock.now() / 1000);
    renameSync(temporary, path);
  }

  function read(slot: Slot): ConfigSource | undefined {
    const text = readFileSync(slotFile(slot), "utf8");
    return text === "" ? undefined : decodeSource(text);
  }

  for (const slot of ["assigned", "last-known-good"] as const) if (!existsSync(slotFile(slot))) write(slot, undefined);

  return {
    read,
    write,
    writtenAt: (slot) => statSync(slotFile(slot)).mtimeMs,
    reset() {
      const wasAssigned = read("assigned") !== undefined;
      write("last-known-good", undefined);
      write("assigned", undefined);
      return wasAssigned;
    },
    has,
    save({ metadata, data = {} }) {
      const folder = folderOf(metadata.uid ?? "", metadata.resourceVersion ?? "");
      makeFolderSync(dirname(folder), 0o755);
      const temporary = mkdtempSync(join(dirname(folder), "tmp_"));
      try {
        for (const [name, text] of Object.entries(data)) writeDurably(join(temporary, pathPart(name)), text);
        renameSync(temporary, folder);
      } catch (err) {
        rmSync(temporary, { recursive: true, force: true });
        throw err;
      }
    },
    fileOf(source) {
      if (!has(source)) throw new Error(`no checkpoint for source ${showSource(source)}`);
      const { uid, resourceVersion, kubeletConfigKey } = source.configMap;
      return join(folderOf(uid, resourceVersion), pathPart(kubeletConfigKey));
    },
  };
}

/** Checks that a name from the API is a single path component. @throws Error when it is not */
function pathPart(name: string): string {
  if (name === "" || name === "." || name === ".." || name !== basename(name) || name.includes("\0"))
    throw new Error(`invalid file key ${JSON.stringify(name)}, only base names are allowed`);
  return name;
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

function writeDurably(path: string, text: string): void {
  const file = openSync(path, "w", 0o600);
  try {
    writeFileSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
