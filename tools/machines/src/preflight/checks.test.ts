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
