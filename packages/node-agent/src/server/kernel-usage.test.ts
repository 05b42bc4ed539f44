import assert from "node:assert/strict";
import { test } from "node:test";
import { cgroupIn, networkStats } from "./kernel-usage.ts";

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
