import { accessSync, constants, readFileSync } from "node:fs";
import { open, readdir, rename, rm, unlink } from "node:fs/promises";
import { basename, join } from "node:path";
import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";
import { makeFolder } from "@coxswain/apimachinery/process/files/make-folder";
import type { Network } from "./networks.ts";
import type { Problem } from "./plan.ts";
import type { PodNetworkSettings } from "./settings.ts";

/** Says in a configuration that this program wrote it, and may change and delete it. */
const ownerKey = "coxswainServices";
const plugins = ["bridge", "host-local", "portmap"] as const;

/** Pure: the configuration of the CNI plugins for a node's pod ranges. Source: the plugins bridge, host-local and portmap */
export function cniConfig(
  own: readonly Network[],
  mtu: number,
  settings: Pick<PodNetworkSettings, "name" | "bridge" | "dataFolder">,
): string {
  const config = {
    cniVersion: "0.4.0",
    name: settings.name,
    [ownerKey]:
      "changes are overwritten; to keep them, remove this line, and the part pod-network leaves the network to this file",
    plugins: [
      {
        type: "bridge",
        bridge: settings.bridge,
        isGateway: true,
        hairpinMode: true,
        mtu,
        ipam: {
          type: "host-local",
          dataDir: settings.dataFolder,
          ranges: own.map(({ text }) => [{ subnet: text }]),
          routes: own.map(({ family }) => ({ dst: family === 4 ? "0.0.0.0/0" : "::/0" })),
        },
      },
      { type: "portmap", capabilities: { portMappings: true }, snat: true },
    ],
  };
  return `${JSON.stringify(config, undefined, 2)}\n`;
}

/** The pod ranges in a configuration of this program; undefined when there is none. */
export function rangesIn(path: string): string[] | undefined {
  const config = readOwn(path);
  if (config === undefined) return undefined;
  const ranges = config.plugins?.[0]?.ipam?.ranges ?? [];
  return ranges.flatMap((range) => range.flatMap(({ subnet }) => subnet ?? []));
}

interface OwnConfig {
  readonly plugins?: readonly { readonly ipam?: { readonly ranges?: readonly (readonly { readonly subnet?: string }[])[] } }[];
}

function readOwn(path: string): OwnConfig | undefined {
  try {
    const config: unknown = JSON.parse(readFileSync(path, "utf8"));
    // cast: the mark says that this program wrote the file, in the form of OwnConfig.
    return isJsonObject(config) && config[ownerKey] !== undefined ? (config as OwnConfig) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The first configuration in the folder that this program did not write, as a container runtime finds it.
 * @returns undefined when there is none
 */
export async function otherNetwork({ configFolder, configPath }: Pick<PodNetworkSettings, "configFolder" | "configPath">) {
  const names = await readdir(configFolder).catch((): string[] => []);
  const other = names
    .filter((name) => /\.(conf|conflist|json)$/.test(name))
    .sort()
    .find((name) => join(configFolder, name) !== configPath || readOwn(configPath) === undefined);
  return other === undefined ? undefined : join(configFolder, other);
}

/**
 * Writes the configuration atomically: readers see the old or the new one, also after a crash.
 * @returns false when the file has this text already
 */
export async function writeConfig(path: string, text: string): Promise<boolean> {
  if (readText(path) === text) return false;
  await makeFolder(join(path, ".."), 0o755);
  const draft = join(path, "..", `.${basename(path)}.new`); // no reader takes this name for a configuration
  await rm(draft, { force: true }); // of a process that was killed
  const file = await open(draft, "wx", 0o644);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(draft, path);
  return true;
}

/** Removes the configuration if this program wrote it. */
export async function removeConfig(path: string): Promise<boolean> {
  if (readOwn(path) === undefined) return false;
  await unlink(path);
  return true;
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

/** @returns a problem when a plugin is in none of the folders, or may not be run */
export function missingPlugins(folders: readonly string[]): Problem | undefined {
  const missing = plugins.filter((name) => !folders.some((folder) => isProgram(join(folder, name))));
  if (missing.length === 0) return undefined;
  const message = `the CNI plugins ${missing.join(", ")} are not in ${folders.join(" or ")}; install them (Debian: containernetworking-plugins) or name their folder in --cni-bin-dir`;
  return { reason: "PluginMissing", message };
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
