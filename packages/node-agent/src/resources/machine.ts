import { readFile, stat, statfs } from "node:fs/promises";
import { isIP, isIPv6 } from "node:net";
import { cpus, hostname, networkInterfaces, release } from "node:os";
import { Quantity } from "@coxswain/apimachinery/objects/meta/quantity";
import { hugePages } from "./topology/machine-topology.ts";

/** Properties of the machine for the Node object. They do not change while the agent runs. */
export interface Machine {
  cpuCount: number;
  memoryBytes: number;
  /** The lines of /proc/swaps; more than one (the heading) means that swap is enabled. */
  swaps: readonly string[];
  machineId: string;
  systemUuid: string;
  bootId: string;
  kernelVersion: string;
  osImage: string;
  /** GOARCH values: `amd64`, `arm64`. */
  architecture: string;
  hostname: string;
  /** Maximum number of processes that the kernel allows. */
  maxPids: number;
  /** Bytes in huge pages by page size, as the API names it: `2Mi`. */
  hugePages: Readonly<Record<string, number>>;
  /** Huge page sizes that cgroups can limit, as the kernel names them: `2MB`. */
  pageSizes: readonly string[];
}

/**
 * Reads /proc, /sys and /etc; values that cannot be read are empty or 0.
 * @param root the folder that contains them; overridden in tests like `name`, the machine's hostname
 */
export async function readMachine(root = "", name = hostname()): Promise<Machine> {
  const own = (path: string): Promise<string> => text(`${root}${path}`);
  const memInfo = await own("/proc/meminfo");
  const kib = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(memInfo)?.[1] ?? 0) * 1024;
  const osRelease = await own("/etc/os-release");
  const pages = await hugePages(`${root}/sys/kernel/mm/hugepages`);
  const machineId = (await own("/etc/machine-id")) || (await own("/var/lib/dbus/machine-id"));
  return {
    cpuCount: cpus().length,
    memoryBytes: kib("MemTotal"),
    swaps: (await own("/proc/swaps")).trim().split("\n"),
    machineId: machineId.trim(),
    systemUuid: (await own("/sys/class/dmi/id/product_uuid")).trim() || machineId.trim(),
    bootId: (await own("/proc/sys/kernel/random/boot_id")).trim(),
    kernelVersion: release(),
    osImage: /^PRETTY_NAME="?([^"\n]*)"?/m.exec(osRelease)?.[1] ?? "",
    architecture: goArchitecture(),
    hostname: name.toLowerCase().trim(),
    maxPids: Math.min(
      ...(await Promise.all(["pid_max", "threads-max"].map((name) => own(`/proc/sys/kernel/${name}`)))).map(Number),
    ),
    hugePages: Object.fromEntries([...pages].map(([size, count]) => [inBinary(size), size * count])),
    pageSizes: (await limitsHugePages(own)) ? [...pages.keys()].map((size) => inBinary(size).replace("i", "B")) : [],
  };
}

const inBinary = (bytes: number): string => Quantity.fromValue(bytes, "BinarySI").toString();

async function limitsHugePages(read: (path: string) => Promise<string>): Promise<boolean> {
  const unified = await read("/sys/fs/cgroup/cgroup.controllers");
  return unified.split(/\s/).includes("hugetlb") || (await read("/sys/fs/cgroup/hugetlb/cgroup.procs")) !== "";
}

/** `--fail-swap-on`. @throws Error when swap is on. Source: pkg/kubelet/cm/container_manager_linux.go NewContainerManager */
export function refuseSwap({ swaps }: Pick<Machine, "swaps">): void {
  if (swaps.length <= 1) return;
  throw new Error(
    `running with swap on is not supported, please disable swap! or set --fail-swap-on flag to false. /proc/swaps contained: [${swaps.join(" ")}]`,
  );
}

function goArchitecture(): string {
  const names: Readonly<Record<string, string>> = { x64: "amd64", ia32: "386" };
  return names[process.arch] ?? process.arch;
}

async function text(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch {
    return "";
  }
}

/** Capacity and usage of a file system. */
interface Filesystem {
  capacityBytes: number;
  /** Without blocks that are reserved for root, which are not available either. */
  usedBytes: number;
  availableBytes: number;
  inodes: number;
  inodesFree: number;
}

/** Capacity and free space of the file system that contains `path`. @throws Error when `path` does not exist */
export async function filesystemOf(path: string): Promise<Filesystem> {
  const info = await statfs(path);
  return {
    capacityBytes: info.blocks * info.bsize,
    usedBytes: (info.blocks - info.bfree) * info.bsize,
    availableBytes: info.bavail * info.bsize,
    inodes: info.files,
    inodesFree: info.ffree,
  };
}

/** Whether two paths are in different file systems. @throws Error when one of them does not exist */
export async function areApart(a: string, b: string): Promise<boolean> {
  const [{ dev: first }, { dev: second }] = await Promise.all([stat(a), stat(b)]);
  return first !== second;
}

/**
 * Pure: the address of the interface with the default route, else the first one that is not loopback or link-local.
 * @param routes the text of /proc/net/route
 */
export function chooseAddress(
  byInterface: ReturnType<typeof networkInterfaces>,
  routes: string,
  family: "IPv4" | "IPv6",
): string | undefined {
  const lines = routes.split("\n").slice(1);
  const withDefault = lines.map((line) => line.split("\t")).find((fields) => fields[1] === "00000000")?.[0];
  const names = [...(withDefault === undefined ? [] : [withDefault]), ...Object.keys(byInterface)];
  for (const name of names) {
    const found = (byInterface[name] ?? []).find(
      (address) => address.family === family && !address.internal && !address.address.startsWith("fe80:"),
    );
    if (found !== undefined) return found.address;
  }
  return undefined;
}

const defaultAddress = async (preferIpv6: boolean): Promise<string | undefined> =>
  chooseAddress(networkInterfaces(), await text("/proc/net/route"), preferIpv6 ? "IPv6" : "IPv4");

/** The valid addresses in `--node-ip`; other elements are ignored. */
const addressesIn = (nodeIp: string): string[] =>
  nodeIp
    .split(",")
    .map((text) => text.trim())
    .filter((text) => isIP(text) > 0);

/** `0.0.0.0` and `::` are not node addresses: they select the family of the default address. */
const isUnspecified = (ip: string): boolean => ip === "0.0.0.0" || /^[0:]+$/.test(ip);

/** Pure: the error in `--node-ip`, if any. Source: cmd/kubelet/app/server.go RunKubelet */
export function nodeIpProblem(nodeIp: string): string | undefined {
  const ips = addressesIn(nodeIp);
  if (ips.length > 2 || (ips.length === 2 && isIPv6(ips[0]!) === isIPv6(ips[1]!))) {
    return `bad --node-ip ${JSON.stringify(nodeIp)}; must contain either a single IP or a dual-stack pair of IPs`;
  }
  if (ips.length === 2 && ips.some(isUnspecified))
    return `dual-stack --node-ip ${JSON.stringify(nodeIp)} cannot include '0.0.0.0' or '::'`;
  return undefined;
}

/** The addresses for the node's status: those of `--node-ip`, else that of the interface with the default route. */
export async function nodeAddresses(nodeIp: string, lookUp = defaultAddress): Promise<string[]> {
  const given = addressesIn(nodeIp);
  if (given.length > 0 && !given.some(isUnspecified)) return given;
  const found = await lookUp(isIPv6(given[0] ?? ""));
  return found === undefined ? ["127.0.0.1"] : [found];
}
