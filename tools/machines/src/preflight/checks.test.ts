import assert from "node:assert/strict";
import { test } from "node:test";
import { type Facts, findings, type Role, withIgnored } from "./checks.ts";

const well: Facts = {
  uid: 0,
  hasSystemd: true,
  cpus: 2,
  memoryMiB: 2048,
  missingPrograms: [],
  hasCniPlugins: true,
  hasEtcdUnit: true,
  etcdVersion: "3.4.23",
  hasRuntime: true,
  runtimeSocket: "/run/containerd/containerd.sock",
  missingControllers: [],
  swap: [],
  failsOnSwap: true,
  ipForward: "1",
  isTimeSynchronized: true,
  resolvesTo: "10.0.0.1",
  addresses: ["10.0.0.1"],
  foreignFiles: [],
  busyPorts: new Map(),
  hasEtcdData: false,
};
const controlPlane: Role = {
  isControlPlane: true,
  isNew: true,
  nodeName: "a",
  address: "10.0.0.1",
  bindPort: 6443,
  criSocket: "unix:///run/containerd/containerd.sock",
  etcdDataDir: "/var/lib/etcd",
  staticPods: false,
};
const node: Role = { ...controlPlane, isControlPlane: false };

const errors = (facts: Partial<Facts>, role: Role): string[] =>
  findings({ ...well, ...facts }, role).flatMap(({ name, isError, remedy }) => {
    assert.notEqual(remedy, "");
    return isError ? [name] : [`${name} (warning)`];
  });

for (const { name, facts, onControlPlane, onNode = onControlPlane } of [
  { name: "a machine that has all", facts: {}, onControlPlane: [] },
  { name: "not root", facts: { uid: 1000 }, onControlPlane: ["IsPrivilegedUser"] },
  { name: "no systemd", facts: { hasSystemd: false }, onControlPlane: ["SystemVerification"] },
  { name: "one CPU", facts: { cpus: 1 }, onControlPlane: ["NumCPU"], onNode: [] },
  { name: "little memory", facts: { memoryMiB: 1699 }, onControlPlane: ["Mem"], onNode: [] },
  {
    name: "missing programs",
    facts: { missingPrograms: ["conntrack", "ip"] },
    onControlPlane: ["FileExisting-conntrack", "FileExisting-ip"],
  },
  { name: "no CNI plugins", facts: { hasCniPlugins: false }, onControlPlane: ["FileExisting-cni"] },
  { name: "no etcd", facts: { etcdVersion: undefined }, onControlPlane: ["FileExisting-etcd"], onNode: [] },
  { name: "an etcd without learners", facts: { etcdVersion: "3.3.25" }, onControlPlane: ["ExternalEtcdVersion"], onNode: [] },
  { name: "no runtime", facts: { hasRuntime: false }, onControlPlane: ["CRI"] },
  { name: "no memory cgroup", facts: { missingControllers: ["memory"] }, onControlPlane: ["SystemVerification"] },
  { name: "swap", facts: { swap: ["/dev/sda2"] }, onControlPlane: ["Swap"] },
  { name: "swap with which the kubelet runs", facts: { swap: ["/dev/sda2"], failsOnSwap: false }, onControlPlane: [] },
  { name: "no forwarding", facts: { ipForward: "0" }, onControlPlane: ["FileContent--proc-sys-net-ipv4-ip_forward"] },
  { name: "a clock on its own", facts: { isTimeSynchronized: false }, onControlPlane: ["Time (warning)"] },
  { name: "a clock of which nothing is known", facts: { isTimeSynchronized: undefined }, onControlPlane: [] },
  { name: "a name that does not resolve", facts: { resolvesTo: undefined }, onControlPlane: ["Hostname (warning)"] },
  { name: "an address of another machine", facts: { addresses: ["10.0.0.2"] }, onControlPlane: ["Address"] },
  {
    name: "a kubelet of somebody else",
    facts: { foreignFiles: ["/usr/bin/kubelet"] },
    onControlPlane: ["FileAvailable--usr-bin-kubelet"],
  },
  {
    name: "ports in use",
    facts: {
      busyPorts: new Map([
        [2379, "etcd.service"],
        [10250, ""],
      ]),
    },
    onControlPlane: ["Port-2379", "Port-10250"],
    onNode: ["Port-10250"],
  },
  { name: "data of an etcd", facts: { hasEtcdData: true }, onControlPlane: ["DirAvailable--var-lib-etcd"], onNode: [] },
] as { name: string; facts: Partial<Facts>; onControlPlane: string[]; onNode?: string[] }[])
  test(`preflight: ${name}`, () => {
    assert.deepEqual(errors(facts, controlPlane), onControlPlane);
    assert.deepEqual(errors(facts, node), onNode);
  });

test("ignored errors are warnings, in any letter case; all, alone, means every one", () => {
  const found = findings({ ...well, uid: 1, swap: ["x"] }, node);
  const isError = (ignored: string[]): boolean[] => withIgnored(found, ignored).map((finding) => finding.isError);
  assert.deepEqual(isError([]), [true, true]);
  assert.deepEqual(isError(["swap"]), [true, false]);
  assert.deepEqual(isError(["all"]), [false, false]);
  assert.throws(() => isError(["all", "swap"]), { exitCode: 2 });
});

const apt = "apt-get install --no-install-recommends";
for (const [name, facts, role, want] of [
  ["1700 MiB", { memoryMiB: 1700 }, controlPlane, []],
  [
    "1699 MiB",
    { memoryMiB: 1699 },
    controlPlane,
    ["1699 MiB of memory are less than the required 1700; give the machine more memory"],
  ],
  ["one CPU", { cpus: 1 }, controlPlane, ["1 CPU is less than the required 2; give the machine another CPU"]],
  ["etcd 3.4", { etcdVersion: "3.4.0" }, controlPlane, []],
  ["etcd 4.0", { etcdVersion: "4.0.1" }, controlPlane, []],
  [
    "etcd 2.9",
    { etcdVersion: "2.9.0" },
    controlPlane,
    ["etcd 2.9.0 is older than 3.4, the first that has learners; install a newer one"],
  ],
  [
    "etcd without a unit",
    { hasEtcdUnit: false },
    controlPlane,
    [`etcd is not installed, or has no unit etcd.service; ${apt} etcd-server`],
  ],
  ["no etcd beside static pods", { hasEtcdUnit: false, etcdVersion: undefined }, { ...controlPlane, staticPods: true }, []],
  ["data beside static pods", { hasEtcdData: true }, { ...controlPlane, isNew: false }, []],
  ["data before the cluster is known", { hasEtcdData: true }, { ...controlPlane, etcdDataDir: undefined }, []],
  [
    "data",
    { hasEtcdData: true },
    { ...controlPlane, etcdDataDir: "/d" },
    ["/d/member has the data of an etcd; coxswain reset removes it; or move it away"],
  ],
  [
    "missing programs",
    { missingPrograms: ["ip", "nsenter", "prlimit", "other"], hasCniPlugins: false },
    node,
    [
      `the program ip is missing; ${apt} iproute2`,
      `the program nsenter is missing; ${apt} util-linux`,
      `the program prlimit is missing; ${apt} util-linux`,
      `the program other is missing; ${apt} other`,
      `there are no CNI plugins in /opt/cni/bin or /usr/lib/cni; ${apt} containernetworking-plugins`,
    ],
  ],
  [
    "no runtime",
    { hasRuntime: false, runtimeSocket: "/run/x.sock" },
    node,
    [
      `no container runtime listens on /run/x.sock; ${apt} containerd, or name another one: --cri-socket (now unix:///run/containerd/containerd.sock)`,
    ],
  ],
  [
    "controllers",
    { missingControllers: ["memory", "cpu"] },
    node,
    [
      "the cgroup controller memory is not enabled; add cgroup_enable=memory to the kernel's command line and boot again",
      "the cgroup controller cpu is not enabled; enable it in the kernel's command line",
    ],
  ],
  [
    "swap",
    { swap: ["/a", "/b"] },
    node,
    [
      'swap is on: /a, /b; swapoff --all, and remove it from /etc/fstab; or let the kubelet run with it: kubeletExtraArgs: fail-swap-on: "false"',
    ],
  ],
  [
    "an address of another machine",
    { addresses: ["10.0.0.2", "10.0.0.3"] },
    node,
    ["10.0.0.1 is no address of this machine (10.0.0.2, 10.0.0.3); give --apiserver-advertise-address"],
  ],
  ["a name", { resolvesTo: undefined }, node, ["the name a cannot be resolved; add it to /etc/hosts, or to your DNS"]],
  [
    "ports of a control plane",
    {
      busyPorts: new Map([
        [7443, ""],
        [6444, "x.service"],
        [10_257, "a.service"],
        [10_259, "b.scope"],
        [2380, ""],
      ]),
    },
    { ...controlPlane, bindPort: 7443 },
    [
      "port 7443 of the API server is in use; ss --listening --processes shows its owner",
      "port 10257 of the controller manager is in use by a.service; systemctl disable --now a",
      "port 10259 of the scheduler is in use by b.scope; ss --listening --processes shows its owner",
      "port 2380 of etcd's peers is in use; ss --listening --processes shows its owner",
    ],
  ],
  [
    "ports of a node",
    {
      busyPorts: new Map([
        [6443, ""],
        [6444, ""],
        [10_250, ""],
      ]),
    },
    node,
    [
      "port 10250 of the kubelet is in use; ss --listening --processes shows its owner",
      "port 6444 of coxswain-services is in use; ss --listening --processes shows its owner",
    ],
  ],
] as readonly [string, Partial<Facts>, Role, readonly string[]][])
  test(`preflight says about ${name}: ${want.length === 0 ? "nothing" : want.length}`, () =>
    assert.deepEqual(
      findings({ ...well, ...facts }, role).map(({ message, remedy }) => `${message}; ${remedy}`),
      want,
    ));
