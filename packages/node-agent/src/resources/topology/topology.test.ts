import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { aContainer, aNodePod } from "../../testing/builders.ts";
import { choicesOf, type Hint, type Hints, mergeHints } from "./hints.ts";
import { readMachineTopology } from "./machine-topology.ts";
import { decidePlace, newTopologyManager, TopologyAffinityError, type TopologyPolicy } from "./topology-manager.ts";

async function files(t: TestContext, content: Record<string, string>): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "cox-sys-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  for (const [path, text] of Object.entries(content)) {
    await mkdir(dirname(join(dir, path)), { recursive: true });
    await writeFile(join(dir, path), `${text}\n`);
  }
  return dir;
}

const cpu = (id: number, socket: number, siblings: string): Record<string, string> => ({
  [`cpu/cpu${id}/topology/physical_package_id`]: String(socket),
  [`cpu/cpu${id}/topology/thread_siblings_list`]: siblings,
});

test("CPUs, cores, sockets and NUMA nodes are read as the kernel shows them", async (t) => {
  const dir = await files(t, {
    "cpu/online": "0-2,4",
    ...cpu(0, 0, "0,2"),
    ...cpu(1, 1, "1"),
    ...cpu(2, 0, "0,2"),
    ...cpu(4, 1, "4"),
    "node/node0/cpulist": "0,2",
    "node/node0/meminfo": "Node 0 MemTotal:       2048 kB\nNode 0 MemFree:        1 kB",
    "node/node0/hugepages/hugepages-2048kB/nr_hugepages": "3",
    "node/node1/cpulist": "1,3-4",
    "node/node1/meminfo": "Node 1 MemTotal:       1024 kB",
    "node/has_cpu": "0-1",
  });
  assert.deepEqual(await readMachineTopology(1, dir), {
    cpus: [
      { id: 0, core: 0, socket: 0, numaNode: 0 },
      { id: 1, core: 1, socket: 1, numaNode: 1 },
      { id: 2, core: 0, socket: 0, numaNode: 0 },
      { id: 4, core: 4, socket: 1, numaNode: 1 },
    ],
    numaNodes: [
      { id: 0, memoryBytes: 2048 * 1024, hugePages: new Map([[2048 * 1024, 3]]) },
      { id: 1, memoryBytes: 1024 * 1024, hugePages: new Map() },
    ],
  });
});

test("a machine without NUMA has one node", async (t) => {
  const dir = await files(t, { "cpu/online": "0", ...cpu(0, 0, "0") });
  const { cpus, numaNodes } = await readMachineTopology(4096, dir);
  assert.deepEqual(cpus, [{ id: 0, core: 0, socket: 0, numaNode: 0 }]);
  hasFields(numaNodes, [{ id: 0, memoryBytes: 4096 }]);
});

test("without a list of online CPUs all folders of CPUs count; offline ones do not; numbers are ordered as numbers", async (t) => {
  const cpus = { ...cpu(10, -1, "2,10"), ...cpu(2, -1, "2,10"), "cpu/cpufreq/boost": "1" };
  const nodes = Object.fromEntries([10, 2].map((id) => [`node/node${id}/meminfo`, `Node ${id} MemTotal: 1 kB`]));
  const all = await readMachineTopology(1, await files(t, { ...cpus, ...nodes, "node/node10/cpulist": "10" }));
  assert.deepEqual(all.cpus, [
    { id: 2, core: 2, socket: 0, numaNode: 2 },
    { id: 10, core: 2, socket: 0, numaNode: 10 },
  ]);
  assert.deepEqual(
    all.numaNodes.map(({ id, memoryBytes }) => [id, memoryBytes]),
    [
      [2, 1024],
      [10, 1024],
    ],
  );
  const { cpus: online } = await readMachineTopology(1, await files(t, { ...cpus, "cpu/online": "10" }));
  assert.deepEqual(
    online.map(({ id }) => id),
    [10],
  );
});

test("sets of NUMA nodes are ordered by size", () => {
  assert.deepEqual(choicesOf([0, 1, 2]), [[0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]]);
});

const hint = (preferred: boolean, ...nodes: number[]): Hint => ({ preferred, ...(nodes.length > 0 && { nodes }) });

for (const { name, hints, want } of [
  { name: "no hints give all nodes, preferred", hints: [], want: hint(true, 0, 1) },
  { name: "a node that both contain", hints: [[hint(true, 0), hint(true, 1)], [hint(true, 1)]], want: hint(true, 1) },
  {
    name: "a preferred hint wins over a narrower one that is not preferred",
    hints: [[hint(false, 0), hint(true, 0, 1)]],
    want: hint(true, 0, 1),
  },
  {
    name: "the common nodes, not preferred because one hint is not",
    hints: [[hint(true, 0)], [hint(false, 0, 1)]],
    want: hint(false, 0),
  },
  { name: "without a common node all nodes, not preferred", hints: [[hint(true, 0)], [hint(true, 1)]], want: hint(false, 0, 1) },
  { name: "the lower of two equal nodes", hints: [[hint(true, 1), hint(true, 0)]], want: hint(true, 0) },
  {
    name: "a hint without nodes keeps the others and removes the preference",
    hints: [[hint(false)], [hint(true, 1)]],
    want: hint(false, 1),
  },
]) {
  test(`hints are merged: ${name}`, () => assert.deepEqual(mergeHints([0, 1], hints), want));
}

const both: Hints = new Map([
  ["cpu", [hint(false, 0, 1)]],
  ["memory", [hint(true, 0)]],
]);
const apart: Hints = new Map([["cpu", [hint(true, 0), hint(true, 1), hint(false, 0, 1)]]]);

for (const { policy, hints, admit, nodes } of [
  { policy: "none", hints: both, admit: true, nodes: undefined },
  { policy: "best-effort", hints: both, admit: true, nodes: [0] },
  { policy: "restricted", hints: both, admit: false, nodes: [0] },
  { policy: "restricted", hints: apart, admit: true, nodes: [0] },
  { policy: "single-numa-node", hints: apart, admit: true, nodes: [0] },
  { policy: "single-numa-node", hints: new Map([["cpu", [hint(true, 0, 1)]]]), admit: false, nodes: undefined },
  { policy: "restricted", hints: new Map([["cpu", [hint(true, 0, 1)]]]), admit: true, nodes: [0, 1] },
  {
    policy: "single-numa-node",
    hints: new Map([
      ["cpu", [hint(true, 1)]],
      ["gpu", undefined],
    ]),
    admit: true,
    nodes: [1],
  },
  { policy: "single-numa-node", hints: new Map([["cpu", [hint(false, 0), hint(true, 0, 1)]]]), admit: false, nodes: undefined },
  { policy: "single-numa-node", hints: new Map(), admit: true, nodes: undefined },
  { policy: "best-effort", hints: new Map([["gpu", []]]), admit: true, nodes: [0, 1] },
  { policy: "restricted", hints: new Map([["gpu", []]]), admit: false, nodes: [0, 1] },
] as { policy: TopologyPolicy; hints: Hints; admit: boolean; nodes: number[] | undefined }[]) {
  const shown = [...hints].map(([name, list]) => `${name} ${JSON.stringify(list)}`).join(", ");
  test(`${policy} ${admit ? "admits" : "rejects"} ${shown || "a pod that asks for nothing"}`, () => {
    const got = decidePlace(policy, [0, 1], [hints]);
    assert.deepEqual([got.admit, got.hint.nodes], [admit, nodes]);
  });
}

for (const { scope, want } of [
  { scope: "container", want: ["init 0", "a 0", "b 1"] },
  { scope: "pod", want: ["init 1", "a 1", "b 1"] },
] as const) {
  test(`with --topology-manager-scope=${scope} NUMA nodes are chosen for each ${scope}`, async () => {
    const pod = aNodePod({
      initContainers: [aContainer({ name: "init" })],
      containers: [aContainer({ name: "a" }), aContainer({ name: "b" })],
    });
    const provider = {
      hints: (_: unknown, { name }: { name: string }): Hints => new Map([["cpu", [hint(true, name === "b" ? 1 : 0)]]]),
      podHints: (): Hints => new Map([["cpu", [hint(true, 1)]]]),
    };
    const manager = newTopologyManager({ policy: "restricted", scope, numaNodes: [0, 1], providers: [provider] });
    const places: string[] = [];
    await manager.place(pod, async ({ name }, place) => void places.push(`${name} ${place.nodes}`));
    assert.deepEqual(places, want);
  });
}

for (const policy of ["none", "best-effort"] as const) {
  test(`with the policy ${policy} a container waits for the allocation of the one before it, and a failure ends it`, async () => {
    const manager = newTopologyManager({ policy, scope: "container", numaNodes: [0], providers: [] });
    const pod = aNodePod({ containers: [aContainer({ name: "a" }), aContainer({ name: "b" }), aContainer({ name: "c" })] });
    const begun: string[] = [];
    const allocate = async ({ name }: { name: string }): Promise<void> => {
      begun.push(name);
      await Promise.resolve();
      if (name === "b") throw new Error("none left");
    };
    await assert.rejects(manager.place(pod, allocate), { message: "none left" });
    assert.deepEqual(begun, ["a", "b"]);
  });
}

test("a pod whose hints the policy does not allow is rejected with TopologyAffinityError", async () => {
  const provider = { hints: () => both, podHints: () => both };
  const manager = newTopologyManager({ policy: "restricted", scope: "container", numaNodes: [0, 1], providers: [provider] });
  await assert.rejects(
    manager.place(aNodePod(), async () => assert.fail("nothing is given")),
    TopologyAffinityError,
  );
  const many = Array.from({ length: 9 }, (_, i) => i);
  assert.throws(() => newTopologyManager({ policy: "restricted", scope: "pod", numaNodes: many, providers: [] }), {
    message: "unsupported on machines with more than 8 NUMA Nodes",
  });
  newTopologyManager({ policy: "restricted", scope: "pod", numaNodes: many.slice(1), providers: [] });
  newTopologyManager({ policy: "none", scope: "container", numaNodes: many, providers: [] });
});
