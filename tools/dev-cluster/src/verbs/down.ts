import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { removeEmptyFolder } from "../cluster-record.ts";
import { down } from "../down.ts";
import { Failure, newProgress } from "../failure.ts";
import { clusterLockFile, withClusterLock } from "../lock.ts";
import { checkOwner } from "../preflight.ts";
import { readSettings } from "../read-settings.ts";
import { unregister } from "../registry.ts";
import { defaultChoices, newSettings, type Settings, stateFolder } from "../settings.ts";
import { nameFlag, newClusterVerb, waitOption } from "./command.ts";

/** `./cox down`: stops a cluster and removes its changes to the machine. */
export function downVerb(root: string): Command {
  return newClusterVerb("down", "stop a cluster; remove its containers, mounts and networks", {
    examples: [
      "./cox down               the next up finds the same objects",
      "./cox down --purge       and the data too",
      "./cox down --name b      another cluster than the default one",
    ],
    files: [".cox/ or .cox/clusters/<name>/   what --purge removes, but for downloads and other clusters"],
  })
    .option("--purge", "remove the cluster's data, certificates, logs and settings too")
    .addOption(waitOption())
    .action(async ({ name, purge = false, wait }: { name: string; purge?: boolean; wait: number }) => {
      const settings = settingsFor(root, name);
      checkOwner(settings.state, `down${nameFlag(name)}`);
      if (!hasTraces(settings)) {
        console.log(`no cluster${name === "default" ? "" : ` ${name}`} was started here; nothing to do`);
        return;
      }
      const work = async (): Promise<void> => {
        await down(settings, newProgress(), purge);
        if (purge) forget(settings);
      };
      await withClusterLock(settings, "down", work, { waitMs: wait });
    });
}

/** Falls back to defaults when cluster.json is damaged: the identity of a cluster depends on its folder only. */
function settingsFor(root: string, name: string): Settings {
  try {
    return readSettings(root, process.env, name);
  } catch (err) {
    if (!(err instanceof Failure)) throw err;
    process.stderr.write(`cox: ${err.message}\n`);
    return newSettings(root, name, stateFolder(root, name), defaultChoices());
  }
}

/** Last step under the lock; deletes the lock file too, and the empty folders of a named cluster. */
function forget({ id, name, state }: Settings): void {
  unregister(id);
  rmSync(clusterLockFile(state), { force: true });
  removeEmptyFolder(name, state);
}

/** Whether anything of a cluster exists, even if its files were deleted while it ran. */
function hasTraces(settings: Settings): boolean {
  return (
    existsSync(settings.run) ||
    existsSync(join("/sys/class/net", settings.bridge)) ||
    ["cluster.json", "run", "etcd", "pki", "containerd"].some((entry) => existsSync(join(settings.state, entry)))
  );
}
