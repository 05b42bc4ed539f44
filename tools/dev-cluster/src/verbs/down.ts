import { existsSync, readdirSync, rmdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Command } from "commander";
import { down } from "../down.ts";
import { newProgress } from "../failure.ts";
import { withClusterLock } from "../lock.ts";
import { checkOwner } from "../preflight.ts";
import { unregister } from "../registry.ts";
import { readSettings, type Settings } from "../settings.ts";
import { nameFlag, newClusterVerb, waitOption } from "./command.ts";

/** `./cox down`: stops a cluster and removes what it has changed on the machine. */
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
      const settings = readSettings(root, process.env, name);
      checkOwner(settings.state, `down${nameFlag(name)}`);
      if (!hasTraces(settings)) {
        console.log(`no cluster${name === "default" ? "" : ` ${name}`} was started here; nothing to do`);
        return;
      }
      await withClusterLock(settings, "down", () => down(settings, newProgress(), purge), { waitMs: wait });
      if (purge) forget(settings);
    });
}

/** Leaves no empty folders of a cluster with a name. */
function forget({ id, name, state }: Settings): void {
  unregister(id);
  if (name === "default" || !existsSync(state) || readdirSync(state).some((entry) => entry !== "lock")) return;
  rmSync(state, { recursive: true, force: true });
  if (readdirSync(dirname(state)).length === 0) rmdirSync(dirname(state));
}

/** Whether there is anything of a cluster, be it that its files were removed by hand while it ran. */
function hasTraces(settings: Settings): boolean {
  return (
    existsSync(settings.run) ||
    existsSync(join("/sys/class/net", settings.bridge)) ||
    ["cluster.json", "run", "etcd", "pki", "containerd"].some((entry) => existsSync(join(settings.state, entry)))
  );
}
