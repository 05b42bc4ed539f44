import assert from "node:assert/strict";
import { test } from "node:test";
import { labelNames } from "../runtime/labels.ts";
import { type ContainerRuntime, containerState, sandboxState } from "../runtime/runtime.ts";
import type { CgroupReader } from "./cadvisor/cgroup-usage.ts";
import { cgroupIn, kernelUsage, networkStats } from "./kernel-usage.ts";

for (const { title, text, cgroup } of [
  { title: "version 2", text: "0::/system.slice/kubelet.service\n", cgroup: "/system.slice/kubelet.service" },
  { title: "version 1", text: "4:memory:/k\n3:cpu,cpuacct:/k\n0::/other\n", cgroup: "/k" },
  { title: "version 1 with systemd", text: "4:memory:/\n3:cpu,cpuacct:/\n1:name=systemd:/k.service\n", cgroup: "/k.service" },
  { title: "version 1, CPU and memory apart", text: "4:memory:/a\n3:cpu,cpuacct:/b\n", cgroup: undefined },
  { title: "none", text: "", cgroup: undefined },
])
  test(`the cgroup of a process is read from its file: ${title}`, () => assert.equal(cgroupIn(text), cgroup));

test("the counters of eth0 are repeated beside the list of interfaces; without eth0 the name is empty", () => {
  const counts = (bytes: number, errors: number) => ({ bytes, packets: 9, errors, dropped: 9 });
  const usage = (name: string) => ({ name, receive: counts(1, 2), transmit: counts(3, 4) });
  const counters = { rxBytes: 1, rxErrors: 2, txBytes: 3, txErrors: 4 };
  const interfaces = [
    { name: "cni0", ...counters },
    { name: "eth0", ...counters },
  ];
  assert.deepEqual(networkStats("now", [usage("cni0"), usage("eth0")]), { time: "now", name: "eth0", ...counters, interfaces });
  assert.deepEqual(networkStats("now", [usage("cni0")]), { time: "now", name: "", interfaces: interfaces.slice(0, 1) });
  assert.deepEqual(networkStats("now", []), { time: "now", name: "" });
});

test("of each pod its cgroup, the processes of its ready sandbox and running containers, and the usage of the latter are read", async () => {
  const sandbox = (id: string, uid: string, state: number = sandboxState.ready) => ({ id, metadata: { uid }, state });
  const container = (id: string, uid: string, state: number = containerState.running) => ({
    id,
    labels: { [labelNames.podUid]: uid },
    state,
  });
  const runtime = {
    listPodSandboxes: async () => [
      sandbox("s-other", "other"),
      sandbox("s-old", "a", sandboxState.notReady),
      sandbox("s-a", "a"),
      sandbox("s-b", "b"),
      sandbox("s-b2", "b"),
    ],
    listContainers: async () => [
      container("c-other", "other"),
      { ...container("c-none", ""), labels: {} },
      container("c-ended", "a", containerState.exited),
      container("c-a1", "a"),
      container("c-a2", "a"),
      container("c-b", "b"),
    ],
  } as unknown as ContainerRuntime;
  const looked: string[] = [];
  const usageAt = (path: string) => ({ cpu: { seconds: path.length }, disks: new Map() });
  const reader = {
    async usage(path: string) {
      looked.push(path);
      return usageAt(path);
    },
    // Processes that are not there: no network is read for them.
    processes: async (path: string) => (path.endsWith("s-a") ? [] : path.endsWith("c-a1") ? [-1, -2] : [-3]),
  } as unknown as CgroupReader;
  const { pods, containers } = await kernelUsage(
    runtime,
    reader,
    new Map([
      ["a", "/pods/a"],
      ["b", ""],
    ]),
  );
  assert.deepEqual(
    [...pods].map(([uid, { cgroup, processes }]) => [uid, cgroup, processes]),
    [
      ["a", usageAt("/pods/a"), 3],
      ["b", undefined, 3],
    ],
  );
  assert.deepEqual([...containers.keys()], ["c-a1", "c-a2", "c-b"]);
  assert.deepEqual(containers.get("c-a2"), usageAt("/pods/a/c-a2"));
  assert.ok(!looked.some((path) => /other|old|ended|none/.test(path)), looked.join());
});
