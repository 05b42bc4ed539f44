/** Checks the requirements of a machine against facts. Pure; names are kubeadm's, for --ignore-preflight-errors. */
import { isKeyOf } from "@coxswain/apimachinery/process/narrowing/keys";
import { UsageFailure } from "../failure.ts";

export interface Finding {
  readonly name: string;
  readonly isError: boolean;
  readonly message: string;
  readonly remedy: string;
}

/** Facts about the machine. */
export interface Facts {
  readonly uid: number;
  readonly hasSystemd: boolean;
  readonly cpus: number;
  readonly memoryMiB: number;
  readonly missingPrograms: readonly string[];
  readonly hasCniPlugins: boolean;
  readonly hasEtcdUnit: boolean;
  /** `3.4.23` */
  readonly etcdVersion: string | undefined;
  readonly hasRuntime: boolean;
  readonly runtimeSocket: string;
  readonly missingControllers: readonly string[];
  /** Swap devices and files. */
  readonly swap: readonly string[];
  readonly failsOnSwap: boolean;
  readonly ipForward: string;
  /** undefined: unknown. */
  readonly isTimeSynchronized: boolean | undefined;
  /** Address to which the node's name resolves. */
  readonly resolvesTo: string | undefined;
  readonly addresses: readonly string[];
  /** Programs and units of other software at the paths of this program's. */
  readonly foreignFiles: readonly string[];
  /** Ports in use by the unit that uses them, "" if unknown; without those of units that this program wrote. */
  readonly busyPorts: ReadonlyMap<number, string>;
  readonly hasEtcdData: boolean;
}

/** The machine's intended role. */
export interface Role {
  readonly isControlPlane: boolean;
  readonly isNew: boolean;
  readonly nodeName: string;
  readonly address: string;
  readonly bindPort: number;
  readonly criSocket: string;
  /** undefined before the cluster's configuration is known, see {@link etcdDataFindings}. */
  readonly etcdDataDir: string | undefined;
  readonly staticPods: boolean;
}

/** Programs of a node, with Debian's packages. */
export const nodePrograms = {
  mount: "mount",
  umount: "mount",
  iptables: "iptables",
  ip: "iproute2",
  conntrack: "conntrack",
  nsenter: "util-linux",
  prlimit: "util-linux",
} as const;

const install = (...packages: readonly string[]): string =>
  `apt-get install --no-install-recommends ${[...new Set(packages)].join(" ")}`;

/** All errors and warnings, in the order of the table. */
export function findings(facts: Facts, role: Role): Finding[] {
  return checks.flatMap((check) => check(facts, role));
}

type Check = (facts: Facts, role: Role) => readonly Finding[];
const error = (name: string, message: string, remedy: string): Finding => ({ name, isError: true, message, remedy });
const warning = (name: string, message: string, remedy: string): Finding => ({ name, isError: false, message, remedy });
const when = (isWrong: boolean, finding: () => Finding): readonly Finding[] => (isWrong ? [finding()] : []);

const checks: readonly Check[] = [
  ({ uid }) => when(uid !== 0, () => error("IsPrivilegedUser", "user is not root", "run it with sudo")),
  ({ hasSystemd }) =>
    when(!hasSystemd, () =>
      error(
        "SystemVerification",
        "systemd does not run on this machine",
        "see Without systemd in docs/installing.md for a manually set up machine",
      ),
    ),
  ({ cpus }, { isControlPlane }) =>
    when(isControlPlane && cpus < 2, () =>
      error("NumCPU", `${cpus} CPU is less than the required 2`, "give the machine another CPU"),
    ),
  ({ memoryMiB }, { isControlPlane }) =>
    when(isControlPlane && memoryMiB < 1700, () =>
      error("Mem", `${memoryMiB} MiB of memory are less than the required 1700`, "give the machine more memory"),
    ),
  ({ missingPrograms, hasCniPlugins }) => [
    ...missingPrograms.map((name) =>
      error(
        `FileExisting-${name}`,
        `the program ${name} is missing`,
        install(isKeyOf(nodePrograms, name) ? nodePrograms[name] : name),
      ),
    ),
    ...when(!hasCniPlugins, () =>
      error(
        "FileExisting-cni",
        "there are no CNI plugins in /opt/cni/bin or /usr/lib/cni",
        install("containernetworking-plugins"),
      ),
    ),
  ],
  ({ hasEtcdUnit, etcdVersion }, { isControlPlane, staticPods }) => {
    if (!isControlPlane || staticPods) return [];
    if (!hasEtcdUnit || etcdVersion === undefined)
      return [error("FileExisting-etcd", "etcd is not installed, or has no unit etcd.service", install("etcd-server"))];
    const [major = 0, minor = 0] = etcdVersion.split(".").map(Number);
    return when(major < 3 || (major === 3 && minor < 4), () =>
      error("ExternalEtcdVersion", `etcd ${etcdVersion} is older than 3.4, the first that has learners`, "install a newer one"),
    );
  },
  ({ hasRuntime, runtimeSocket }, { criSocket }) =>
    when(!hasRuntime, () =>
      error(
        "CRI",
        `no container runtime listens on ${runtimeSocket}`,
        `${install("containerd")}, or name another one: --cri-socket (now ${criSocket})`,
      ),
    ),
  ({ missingControllers }) =>
    missingControllers.map((name) =>
      error(
        "SystemVerification",
        `the cgroup controller ${name} is not enabled`,
        name === "memory"
          ? "add cgroup_enable=memory to the kernel's command line and boot again"
          : "enable it in the kernel's command line",
      ),
    ),
  ({ swap, failsOnSwap }) =>
    when(swap.length > 0 && failsOnSwap, () =>
      error(
        "Swap",
        `swap is on: ${swap.join(", ")}`,
        'swapoff --all, and remove it from /etc/fstab; or let the kubelet run with it: kubeletExtraArgs: fail-swap-on: "false"',
      ),
    ),
  ({ ipForward }) =>
    when(ipForward !== "1", () =>
      error(
        "FileContent--proc-sys-net-ipv4-ip_forward",
        "/proc/sys/net/ipv4/ip_forward is not 1",
        "echo net.ipv4.ip_forward=1 >/etc/sysctl.d/90-kubernetes.conf && sysctl --system",
      ),
    ),
  ({ isTimeSynchronized }) =>
    when(isTimeSynchronized === false, () =>
      warning("Time", "the clock is not synchronized: certificates and leases depend on it", install("systemd-timesyncd")),
    ),
  ({ resolvesTo }, { nodeName }) =>
    when(resolvesTo === undefined, () =>
      warning("Hostname", `the name ${nodeName} cannot be resolved`, `add it to /etc/hosts, or to your DNS`),
    ),
  ({ addresses }, { address }) =>
    when(!addresses.includes(address), () =>
      error(
        "Address",
        `${address} is no address of this machine (${addresses.join(", ")})`,
        "give --apiserver-advertise-address",
      ),
    ),
  ({ foreignFiles }) =>
    foreignFiles.map((path) =>
      error(
        `FileAvailable-${path.replaceAll("/", "-")}`,
        `${path} exists and is not of this program`,
        "move it away; coxswain reset removes what it wrote itself",
      ),
    ),
  ({ busyPorts }, role) =>
    portsOf(role)
      .filter(({ port }) => busyPorts.has(port))
      .map(({ port, of }) => {
        const owner = busyPorts.get(port);
        const stop = owner?.endsWith(".service")
          ? `systemctl disable --now ${owner.replace(/\.service$/, "")}`
          : "ss --listening --processes shows its owner";
        return error(`Port-${port}`, `port ${port} of ${of} is in use${owner ? ` by ${owner}` : ""}`, stop);
      }),
  ({ hasEtcdData }, { isControlPlane, isNew, etcdDataDir }) =>
    isControlPlane && isNew && etcdDataDir !== undefined ? etcdDataFindings(hasEtcdData, etcdDataDir) : [],
];

/** A new member of etcd must not start with the data of another one. */
export const etcdDataFindings = (hasEtcdData: boolean, etcdDataDir: string): readonly Finding[] =>
  when(hasEtcdData, () =>
    error(
      `DirAvailable-${etcdDataDir.replaceAll("/", "-")}`,
      `${etcdDataDir}/member has the data of an etcd`,
      "coxswain reset removes it; or move it away",
    ),
  );

/** Ports that must be free. Those of units that an earlier attempt has started are left out by the facts. */
export function portsOf({ isControlPlane, bindPort }: Role): { port: number; of: string }[] {
  return [
    ...(isControlPlane
      ? [
          { port: bindPort, of: "the API server" },
          { port: 10257, of: "the controller manager" },
          { port: 10259, of: "the scheduler" },
          { port: 2379, of: "etcd" },
          { port: 2380, of: "etcd's peers" },
        ]
      : []),
    { port: 10250, of: "the kubelet" },
    ...(isControlPlane ? [] : [{ port: 6444, of: "coxswain-services" }]),
  ];
}

/**
 * Errors named in `ignored` (or `all`), in any case, become warnings.
 * @throws UsageFailure for `all` beside others
 */
export function withIgnored(found: readonly Finding[], ignored: readonly string[]): Finding[] {
  const names = new Set(ignored.map((name) => name.toLowerCase()));
  if (names.has("all") && names.size > 1)
    throw new UsageFailure("--ignore-preflight-errors: all cannot be combined with other names");
  return found.map((finding) =>
    names.has("all") || names.has(finding.name.toLowerCase()) ? { ...finding, isError: false } : finding,
  );
}
