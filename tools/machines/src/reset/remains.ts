/** Everything that a cluster leaves on a machine, and its removal by reset. */
import { existsSync, globSync, readdirSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { begunFile } from "../cluster/begun-configuration.ts";
import { folder } from "../config/settings.ts";
import { etcdDropIn } from "../control-plane/etcd-unit.ts";
import { controlPlaneDaemons } from "../control-plane/flags.ts";
import { manifestFolder } from "../control-plane/static-pods.ts";
import { isOurs, linesOf, linkTarget } from "../host/files.ts";
import { runProgram, tryProgram } from "../host/programs.ts";
import { isActive, isEnabled, reloadUnits, stopUnits, unitFolder } from "../host/systemd.ts";
import { timers } from "../host/timer.ts";
import { kubeletFolder } from "../node/kubelet-config.ts";
import { apiServersFile, links } from "../node/steps.ts";
import type { Remains } from "../steps.ts";

/** Context of reset. */
export interface ResetContext {
  readonly home: string;
  readonly etcdDataDir: string;
  /** Socket of the container runtime. */
  readonly criSocket: string;
}

const daemonUnits = ["coxswain-services", "kubelet", ...controlPlaneDaemons] as const;
const timerNames = Object.values(timers);
const unitFile = (unit: string): string => join(unitFolder, `${unit}.service`);

/** Timers that run or start with the machine. */
async function runningTimers(): Promise<string[]> {
  const units = timerNames.map((name) => `${name}.timer`);
  const states = await Promise.all(units.map(async (unit) => (await isActive(unit)) || (await isEnabled(unit))));
  return units.filter((_, i) => states[i]);
}

/** Units of this program that run or start with the machine. */
async function runningUnits(units: readonly string[]): Promise<string[]> {
  const states = await Promise.all(units.map(async (unit) => (await isActive(unit)) || (await isEnabled(unit))));
  return units.filter((unit, i) => states[i] && (isOurs(unitFile(unit)) || (unit === "etcd" && isOurs(etcdDropIn))));
}

const stop = (name: string, units: readonly string[]): Remains<ResetContext> => ({
  name,
  present: async () => (await runningUnits(units)).map((unit) => `stop ${unit}`),
  remove: async () => stopUnits(await runningUnits(units)),
});

const remove = (name: string, paths: (context: ResetContext) => readonly string[]): Remains<ResetContext> => ({
  name,
  present: (context) =>
    paths(context)
      .filter((path) => linkTarget(path) !== undefined)
      .map((path) => `remove ${path}`),
  remove(context) {
    for (const path of paths(context)) rmSync(path, { recursive: true, force: true });
  },
});

/** In this order: the kubelet first, so that it does not restart stopped pods. */
export const remains: readonly Remains<ResetContext>[] = [
  stop("services", ["coxswain-services", "kubelet"]),
  {
    name: "timers",
    present: async () => (await runningTimers()).map((unit) => `stop ${unit}`),
    remove: async () => stopUnits(await runningTimers()),
  },
  {
    name: "network",
    present: ({ home }) =>
      existsSync(unitFile("coxswain-services")) && existsSync(join(home, "bin", "coxswain-services"))
        ? ["remove the rules of Services and the pod network"]
        : [],
    remove: async ({ home }) => void (await runProgram(join(home, "bin", "coxswain-services"), ["--cleanup"])),
  },
  {
    name: "pods",
    present: async (context) => (await containers(context)).map((id) => `stop and remove container ${id}`),
    async remove(context) {
      for (const id of await containers(context)) {
        await tryProgram("ctr", ...address(context), "tasks", "kill", "--signal", "SIGKILL", "--all", id);
        await tryProgram("ctr", ...address(context), "tasks", "delete", "--force", id);
        await runProgram("ctr", [...address(context), "containers", "delete", id]);
      }
    },
  },
  stop("control-plane", [...controlPlaneDaemons, "etcd"]),
  {
    name: "mounts",
    present: () => mountsBelow(kubeletFolder).map((path) => `unmount ${path}`),
    async remove() {
      for (const path of mountsBelow(kubeletFolder)) await tryProgram("umount", "--lazy", path);
    },
  },
  remove("units", () => [
    ...daemonUnits.map(unitFile).filter(isOurs),
    ...timerNames.flatMap((name) => [unitFile(name), join(unitFolder, `${name}.timer`)]).filter(isOurs),
    ...[join(unitFolder, "kubelet.service.d", "10-kubeadm.conf")],
    ...(isOurs(etcdDropIn) ? [etcdDropIn] : []),
  ]),
  remove("etcd-data", ({ etcdDataDir }) => [join(etcdDataDir, "member")]),
  remove("kubelet-data", () => contentsOf(kubeletFolder)),
  remove("configuration", () => [
    ...globSync(join(folder, "*.conf")),
    ...[join(folder, "pki"), ...globSync(join(manifestFolder, "*")), apiServersFile, begunFile],
  ]),
  remove("links", ({ home }) => links.filter((path) => linkTarget(path)?.startsWith(`${home}/`) === true)),
  remove("users", () => ["/usr/lib/sysusers.d/coxswain.conf"]),
];

/** Reloads systemd, which otherwise keeps using removed drop-ins. */
export const afterRemoval = async (): Promise<void> => void (await reloadUnits());

/** The contents of a folder; the folder itself may be a mount point and stays. */
const contentsOf = (path: string): string[] => (existsSync(path) ? readdirSync(path).map((name) => join(path, name)) : []);

const address = ({ criSocket }: ResetContext): string[] => [
  "--address",
  criSocket.replace(/^unix:\/\//, ""),
  "--namespace",
  "k8s.io",
];

/** Containers in containerd's namespace k8s.io; those of other runtimes are left to their own tools. */
async function containers(context: ResetContext): Promise<string[]> {
  if (!basename(context.criSocket).startsWith("containerd")) return [];
  const text = await tryProgram("ctr", ...address(context), "containers", "list", "--quiet");
  return text === undefined ? [] : text.split("\n").filter((line) => line !== "");
}

/** Mounts below the folder, deepest first. */
function mountsBelow(path: string): string[] {
  return linesOf("/proc/self/mounts")
    .map((line) =>
      (line.split(" ")[1] ?? "").replaceAll(/\\(\d{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8))),
    )
    .filter((mount) => mount.startsWith(`${path}/`))
    .sort((a, b) => b.length - a.length);
}
