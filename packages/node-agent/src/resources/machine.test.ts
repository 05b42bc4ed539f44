import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { type networkInterfaces, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { chooseAddress, nodeAddresses, nodeIpProblem, readMachine, refuseSwap } from "./machine.ts";

/** The files of a machine, below a folder. */
async function machineOf(t: TestContext, files: Readonly<Record<string, string>>) {
  const root = await mkdtemp(join(tmpdir(), "cox-machine-"));
  t.after(() => rm(root, { recursive: true, force: true }));
  for (const [path, text] of Object.entries(files)) {
    await mkdir(join(root, dirname(path)), { recursive: true });
    await writeFile(join(root, path), text);
  }
  return readMachine(root, "Node-1.Example.com\n");
}

test("a machine's properties are read from /proc, /sys and /etc", async (t) => {
  const machine = await machineOf(t, {
    "/proc/meminfo": "MemFree:  1 kB\nMemTotal:        2048 kB\nSwapTotal: 5 kB\n",
    "/proc/swaps": "Filename Type\n/swap file\n",
    "/etc/machine-id": "0123\n",
    "/var/lib/dbus/machine-id": "of dbus\n",
    "/sys/class/dmi/id/product_uuid": "AB-CD\n",
    "/proc/sys/kernel/random/boot_id": "boot-1\n",
    "/etc/os-release": 'NAME="Other"\nPRETTY_NAME="Linux 1"\nID=x\n',
    "/proc/sys/kernel/pid_max": "4194304\n",
    "/proc/sys/kernel/threads-max": "1000\n",
    "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "3\n",
    "/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages": "2\n",
    "/sys/fs/cgroup/hugetlb/cgroup.procs": "1\n",
  });
  const { pageSizes, ...rest } = machine;
  hasFields(rest, {
    memoryBytes: 2 * 1024 ** 2,
    swaps: ["Filename Type", "/swap file"],
    machineId: "0123",
    systemUuid: "AB-CD",
    bootId: "boot-1",
    osImage: "Linux 1",
    hostname: "node-1.example.com",
    architecture: { x64: "amd64" }[process.arch as string] ?? process.arch,
    maxPids: 1000,
    hugePages: { "2Mi": 6 * 1024 ** 2, "1Gi": 2 * 1024 ** 3 },
  });
  assert.deepEqual(pageSizes.toSorted(), ["1GB", "2MB"]);
});

test("without files of its own a machine has the ID of D-Bus, also as its UUID, and no limits of huge pages", async (t) => {
  const files = {
    "/etc/machine-id": "",
    "/var/lib/dbus/machine-id": "of dbus\n",
    "/sys/class/dmi/id/product_uuid": "\n",
    "/etc/os-release": "PRETTY_NAME=Linux\n",
    "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "0\n",
  };
  hasFields(await machineOf(t, files), {
    memoryBytes: 0,
    machineId: "of dbus",
    systemUuid: "of dbus",
    osImage: "Linux",
    hugePages: { "2Mi": 0 },
    pageSizes: [],
  });
  const unified = { ...files, "/sys/fs/cgroup/cgroup.controllers": "cpu hugetlb pids\n" };
  assert.deepEqual((await machineOf(t, unified)).pageSizes, ["2MB"]);
});

for (const { nodeIp, want } of [
  { nodeIp: "192.0.2.7", want: ["192.0.2.7"] },
  { nodeIp: "192.0.2.7, 2001:db8::7", want: ["192.0.2.7", "2001:db8::7"] },
  { nodeIp: "", want: ["198.51.100.1"] },
  { nodeIp: "0.0.0.0", want: ["198.51.100.1"] },
  { nodeIp: "::", want: ["2001:db8::1"] },
  { nodeIp: "not an address", want: ["198.51.100.1"] },
]) {
  test(`--node-ip=${JSON.stringify(nodeIp)} reports ${want.join(" and ")}`, async () => {
    const lookUp = async (preferIpv6: boolean): Promise<string> => (preferIpv6 ? "2001:db8::1" : "198.51.100.1");
    assert.deepEqual(await nodeAddresses(nodeIp, lookUp), want);
    assert.equal(nodeIpProblem(nodeIp), undefined);
  });
}

for (const { nodeIp, want } of [
  {
    nodeIp: "192.0.2.7,192.0.2.8",
    want: 'bad --node-ip "192.0.2.7,192.0.2.8"; must contain either a single IP or a dual-stack pair of IPs',
  },
  { nodeIp: "192.0.2.7,::,192.0.2.8", want: /must contain either a single IP or a dual-stack pair of IPs$/ },
  { nodeIp: "192.0.2.7,::", want: `dual-stack --node-ip "192.0.2.7,::" cannot include '0.0.0.0' or '::'` },
]) {
  test(`--node-ip=${nodeIp} is refused`, () => {
    const problem = nodeIpProblem(nodeIp) ?? "";
    if (typeof want === "string") assert.equal(problem, want);
    else assert.match(problem, want);
  });
}

test("a machine with swap is refused, and the error names the swap devices", () => {
  refuseSwap({ swaps: ["Filename Type Size Used Priority"] });
  assert.throws(() => refuseSwap({ swaps: ["Filename Type Size Used Priority", "/swap file 1024 0 -2"] }), {
    message:
      "running with swap on is not supported, please disable swap! or set --fail-swap-on flag to false. /proc/swaps contained: [Filename Type Size Used Priority /swap file 1024 0 -2]",
  });
});

test("a node's address is on the interface of the default route, else on the first one; never loopback or link-local", () => {
  const of = (...addresses: string[]) =>
    addresses.map((address) => ({
      address,
      family: address.includes(":") ? "IPv6" : "IPv4",
      internal: address === "127.0.0.1" || address === "::1",
    }));
  const interfaces = {
    lo: of("127.0.0.1", "::1"),
    eth0: of("192.0.2.1", "fe80::1"),
    eth1: of("198.51.100.1", "fe80::2", "2001:db8::2"),
  } as unknown as ReturnType<typeof networkInterfaces>;
  const heading = "Iface\tDestination\tGateway";
  const routes = (...lines: string[]) => [heading, ...lines, ""].join("\n");
  const byDefault = routes("eth0\t000200C0\t0", "eth1\t00000000\t1");
  assert.equal(chooseAddress(interfaces, byDefault, "IPv4"), "198.51.100.1");
  assert.equal(chooseAddress(interfaces, routes("eth1\t006433C6\t0"), "IPv4"), "192.0.2.1");
  assert.equal(chooseAddress(interfaces, routes("eth0\t00000000\t1"), "IPv6"), "2001:db8::2");
  assert.equal(chooseAddress({ lo: interfaces["lo"] ?? [] }, byDefault, "IPv4"), undefined);
});
