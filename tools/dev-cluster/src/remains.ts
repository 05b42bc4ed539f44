import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { runProgram } from "@coxswain/cluster-services/host/run-program";
import { restoreLoopbackRouting } from "@coxswain/cluster-services/services/kernel-settings";
import { cgroupFolders, processesIn, removeCgroups, thaw } from "./cgroups.ts";
import { type ClusterProcess, haveEnded, processesOf, shimsOf, signalAll } from "./cluster-processes.ts";
import { tryExec } from "./commands.ts";
import { containerdSocket } from "./containerd.ts";
import { mountsBelow, unmountBelow } from "./mounts.ts";
import { findRules, removeRules } from "./rules.ts";
import type { Settings } from "./settings.ts";

/** One kind of leftover of a cluster, found by the cluster's ID and folders alone. */
export interface Remains {
  /** Descriptions of existing leftovers, for the user. */
  find(settings: Settings): Promise<string[]> | string[];
  /** Best effort; leftovers are reported by the next `find`. */
  remove(settings: Settings): Promise<void> | void;
}

const endMs = 2_000;
const attempts = 3;
const retryMs = 300;

/** In removal order: dependencies last. Works without containerd. */
const kinds: readonly Remains[] = [
  {
    find: (settings) => processes(settings).map(({ pid, name }) => `process ${pid} (${name})`),
    async remove(settings) {
      thaw(cgroupFolders(cgroupOf(settings)));
      const found = processes(settings);
      signalAll(found, "SIGKILL");
      await haveEnded(found, endMs);
    },
  },
  {
    find: (settings) => mountsBelow(foldersOf(settings)).map((path) => `mount ${path}`),
    remove: (settings) => unmountBelow(foldersOf(settings)),
  },
  {
    find: (settings) => interfaces(settings).map((name) => `network interface ${name}`),
    async remove(settings) {
      for (const name of interfaces(settings)) await tryExec("ip", ["link", "delete", name]);
    },
  },
  {
    find: async (settings) =>
      (await findRules(settings.id)).flatMap(({ table, chains, rules }) => [
        ...chains.map((chain) => `chain ${chain} of iptables' table ${table}`),
        ...rules.map((rule) => `rule of iptables' table ${table}: ${rule}`),
      ]),
    async remove(settings) {
      await removeRules(settings.id).catch(() => {}); // reported by `find`
      await restoreLoopbackRouting(runProgram).catch(() => {});
    },
  },
  {
    find: (settings) => cgroupFolders(cgroupOf(settings)).map((folder) => `cgroup ${folder}`),
    remove: (settings) => removeCgroups(cgroupFolders(cgroupOf(settings))),
  },
  {
    find: (settings) =>
      [...podLogs(settings), settings.run].filter((folder) => existsSync(folder)).map((folder) => `folder ${folder}`),
    remove(settings) {
      if (mountsBelow(foldersOf(settings)).length > 0) return; // never delete through a mount
      for (const folder of [...podLogs(settings), join(settings.state, "kubelet", "pods"), settings.run]) removeFolder(folder);
    },
  },
];

/**
 * Removes everything of a cluster except its data: processes, mounts, interfaces, rules, cgroups, sockets, pod folders and logs.
 * @returns descriptions of what remains
 */
export async function removeRemains(settings: Settings): Promise<string[]> {
  // Without root there are only processes, and the folder of sockets.
  const left = await removeKinds(settings.asRoot ? kinds : kinds.slice(0, 1), settings);
  if (!settings.asRoot) removeFolder(settings.run);
  return left;
}

/** Removes all kinds in their order, up to three times. @returns descriptions of what remains after the last time */
export async function removeKinds(
  wanted: readonly Remains[],
  settings: Settings,
  pause: (ms: number) => Promise<unknown> = delay,
): Promise<string[]> {
  for (let attempt = 1; ; attempt++) {
    const left: string[] = [];
    for (const kind of wanted) {
      if ((await kind.find(settings)).length === 0) continue;
      await kind.remove(settings);
      left.push(...(await kind.find(settings)));
    }
    if (left.length === 0 || attempt === attempts) return left;
    await pause(retryMs); // the kernel destroys a network namespace asynchronously after its last process
  }
}

const cgroupOf = (settings: Settings): string => `cox-${settings.id}`;
const foldersOf = (settings: Settings): string[] => [settings.run, settings.state];

function processes(settings: Settings): ClusterProcess[] {
  const found = [
    ...processesOf(settings.id),
    ...shimsOf(containerdSocket(settings)),
    ...processesIn(cgroupFolders(cgroupOf(settings))),
  ];
  return [...new Map(found.map((one) => [one.pid, one])).values()];
}

/** The bridge and the pods' veth interfaces on it; other ports of the bridge belong to the user. */
export function interfaces({ bridge }: Pick<Settings, "bridge">, devices = "/sys/class/net"): string[] {
  const folder = join(devices, bridge);
  if (!existsSync(folder)) return [];
  const ports = join(folder, "brif");
  return [...entries(ports).filter((name) => name.startsWith("veth")), bridge];
}

/** Kubelets share /var/log/pods; folder names there end with the pod's UID. */
export function podLogs(settings: Pick<Settings, "state">, logs = "/var/log/pods"): string[] {
  const uids = new Set(entries(join(settings.state, "kubelet", "pods")));
  return entries(logs)
    .filter((entry) => uids.has(entry.slice(entry.lastIndexOf("_") + 1)))
    .map((entry) => join(logs, entry));
}

const entries = (folder: string): string[] => (existsSync(folder) ? readdirSync(folder) : []);

function removeFolder(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true });
  } catch {
    // reported by `find`
  }
}
