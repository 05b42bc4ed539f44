/** Reads the facts for {@link findings}. Changes nothing. */
import { lookup } from "node:dns/promises";
import { existsSync, globSync } from "node:fs";
import { createServer } from "node:net";
import { availableParallelism, networkInterfaces, totalmem } from "node:os";
import { join } from "node:path";
import { etcdDropIn } from "../control-plane/etcd-unit.ts";
import { manifestFolder } from "../control-plane/static-pods.ts";
import { isOurs, linesOf, linkTarget, readIfThere } from "../host/files.ts";
import { findProgram, tryProgram } from "../host/programs.ts";
import { unitFolder } from "../host/systemd.ts";
import { type Facts, nodePrograms, portsOf, type Role } from "./checks.ts";

export interface FactsOptions {
  /** The folder of the archive. */
  readonly home: string;
  /** Links that are made in /usr/bin. */
  readonly links: readonly string[];
  readonly kubeletFlags: Readonly<Record<string, string>>;
}

export async function readFacts(role: Role, { home, links, kubeletFlags }: FactsOptions): Promise<Facts> {
  const [systemd, etcd, clock, name] = await Promise.all([
    existsSync("/run/systemd/system"),
    tryProgram("etcd", "--version"),
    tryProgram("timedatectl", "show", "--property=NTPSynchronized", "--value"),
    lookup(role.nodeName).then(
      ({ address }) => address,
      () => undefined,
    ),
  ]);
  const runtimeSocket = role.criSocket.replace(/^unix:\/\//, "");
  return {
    uid: process.getuid?.() ?? -1,
    hasSystemd: systemd,
    cpus: availableParallelism(),
    memoryMiB: Math.floor(totalmem() / (1 << 20)),
    missingPrograms: Object.keys(nodePrograms).filter((program) => findProgram(program) === undefined),
    hasCniPlugins: ["/opt/cni/bin", "/usr/lib/cni", "/usr/libexec/cni"].some((path) => globSync(join(path, "*")).length > 0),
    hasEtcdUnit: [unitFolder, "/lib/systemd/system", "/usr/lib/systemd/system"].some((path) =>
      existsSync(join(path, "etcd.service")),
    ),
    etcdVersion: /etcd Version: (\S+)/.exec(etcd ?? "")?.[1],
    hasRuntime: existsSync(runtimeSocket),
    runtimeSocket,
    missingControllers: missingControllers(),
    swap: linesOf("/proc/swaps")
      .slice(1)
      .flatMap((line) => line.split(/\s+/)[0] ?? []),
    failsOnSwap: kubeletFlags["fail-swap-on"] !== "false",
    ipForward: linesOf("/proc/sys/net/ipv4/ip_forward")[0] ?? "",
    isTimeSynchronized: clock === undefined ? undefined : clock.trim() === "yes",
    resolvesTo: name,
    addresses: Object.values(networkInterfaces()).flatMap(
      (all) => all?.filter((one) => !one.internal).map(({ address }) => address) ?? [],
    ),
    foreignFiles: links.filter((path) => {
      const target = linkTarget(path);
      return target !== undefined && !target.startsWith(`${home}/`);
    }),
    busyPorts: await busyPorts(role),
    hasEtcdData: role.etcdDataDir !== undefined && hasEtcdData(role.etcdDataDir) && !runsPods(role),
  };
}

/** True when the folder contains data that this program did not write. */
export const hasEtcdData = (folder: string): boolean => existsSync(join(folder, "member")) && !isOurs(etcdDropIn);

/** Reads the root's list for cgroup v2, the kernel's table for v1. */
function missingControllers(): string[] {
  const v2 = linesOf("/sys/fs/cgroup/cgroup.controllers")[0];
  const present =
    v2 !== undefined
      ? v2.split(" ")
      : linesOf("/proc/cgroups")
          .filter((line) => line.endsWith("\t1"))
          .map((line) => line.split("\t")[0]);
  return ["cpu", "memory", "pids", "cpuset"].filter((name) => !present.includes(name));
}

/** True when an earlier attempt has started the control plane as static pods. */
const runsPods = ({ staticPods }: Role): boolean =>
  staticPods && isOurs(join(unitFolder, "kubelet.service")) && readIfThere(join(manifestFolder, "etcd.yaml")) !== undefined;

async function busyPorts(role: Role): Promise<Map<number, string>> {
  const busy = new Map<number, string>();
  if (runsPods(role)) return busy;
  for (const { port } of portsOf(role)) {
    if (await canListen(port)) continue;
    const unit = await unitOfPort(port);
    if (unit !== "" && [join(unitFolder, unit), join(unitFolder, `${unit}.d`, "10-coxswain.conf")].some(isOurs)) continue;
    busy.set(port, unit);
  }
  return busy;
}

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, () => server.close(() => resolve(true)));
  });
}

/** The unit of the process that listens, by its cgroup: `etcd.service`; "" without a unit. */
async function unitOfPort(port: number): Promise<string> {
  const text =
    (await tryProgram("ss", "--no-header", "--listening", "--tcp", "--numeric", "--processes", `sport = :${port}`)) ?? "";
  const pid = /pid=(\d+)/.exec(text)?.[1];
  const line = pid === undefined ? undefined : linesOf(`/proc/${pid}/cgroup`).find((entry) => entry.includes(".service"));
  return /([\w@.-]+\.service)/.exec(line ?? "")?.[1] ?? "";
}
