import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Container } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import type { NodePod } from "../../pod/pod.ts";
import { aContainer, aNodePod } from "../../testing/builders.ts";
import { decodeCheckpoint, newCheckpointFile } from "../checkpoint-file.ts";
import type { Hint } from "../topology/hints.ts";
import type { NumaNode } from "../topology/machine-topology.ts";
import { MemoryManager } from "./memory-manager.ts";
import { memoryStateForm } from "./memory-state.ts";
import { chooseNodes, emptyMemory, memoryHints, moveBlock, reusableAfter, reusableOn } from "./numa-memory.ts";

const gi = 1024 ** 3;
const mi = 1024 ** 2;
const twoNodes: NumaNode[] = [
  { id: 0, memoryBytes: 5 * gi, hugePages: new Map([[2 * mi, 512]]) },
  { id: 1, memoryBytes: 4 * gi, hugePages: new Map() },
];
const reserved = [{ numaNode: 0, limits: { memory: "1Gi" } }];
const machine = emptyMemory(twoNodes, reserved, { memory: "1Gi", cpu: "1" });

test("a NUMA node's allocatable memory excludes reserved memory and huge pages", () => {
  assert.deepEqual(
    machine.get(0)?.tables,
    new Map([
      ["hugepages-2Mi", { total: gi, systemReserved: 0, allocatable: gi, reserved: 0, free: gi }],
      ["memory", { total: 5 * gi, systemReserved: gi, allocatable: 3 * gi, reserved: 0, free: 3 * gi }],
    ]),
  );
});

test("huge pages of all sizes are taken off a NUMA node's memory", () => {
  const hugePages = new Map([
    [2 * mi, 512],
    [gi, 2],
  ]);
  const { tables } =
    emptyMemory([{ id: 0, memoryBytes: 5 * gi, hugePages }], reserved, { memory: "1Gi" }).get(0) ?? assert.fail();
  const allocatable = [...tables].map(([type, table]) => [type, table.allocatable / gi]);
  assert.deepEqual(Object.fromEntries(allocatable), { "hugepages-2Mi": 1, "hugepages-1Gi": 2, memory: 1 });
});

for (const { name, own, inAll, want } of [
  {
    name: "of a node that is not there",
    own: [{ numaNode: 2, limits: { memory: "1Gi" } }],
    inAll: { memory: "1Gi" },
    want: /references a NUMA node 2 that does not exist on this machine/,
  },
  {
    name: "that is not what is reserved in all",
    own: reserved,
    inAll: { memory: "2Gi" },
    want: /^the total amount "1Gi" of type "memory" is not equal to the value "2Gi" determined by Node Allocatable feature$/,
  },
  {
    name: "of a second type that is not reserved in all",
    own: [{ numaNode: 0, limits: { memory: "1Gi", "hugepages-2Mi": "2Mi" } }],
    inAll: { memory: "1Gi" },
    want: /^the total amount "2Mi" of type "hugepages-2Mi" is not equal to the value "0" determined/,
  },
  {
    name: "without the second type of what is reserved in all",
    own: reserved,
    inAll: { memory: "1Gi", "hugepages-2Mi": "2Mi" },
    want: /^the total amount "0" of type "hugepages-2Mi" is not equal to the value "2Mi" determined/,
  },
  { name: "of none", own: [], inAll: {}, want: /^\[memorymanager\] you should specify the system reserved memory$/ },
]) {
  test(`refuses reserved memory ${name}`, () => assert.throws(() => emptyMemory(twoNodes, own, inAll), { message: want }));
}

test("the memory that is reserved in all may be spread over NUMA nodes", () => {
  const spread = [0, 1].map((numaNode) => ({ numaNode, limits: { memory: "512Mi" } }));
  const made = emptyMemory(twoNodes, spread, { memory: "1Gi" });
  assert.deepEqual(
    [0, 1].map((id) => made.get(id)?.tables.get("memory")?.systemReserved),
    [512 * mi, 512 * mi],
  );
});

const shown = (hints: readonly Hint[] = []): string[] => hints.map(({ nodes, preferred }) => `${nodes} ${preferred}`);

test("memory hints are all sets of NUMA nodes with enough memory; preferred are the smallest an empty machine needs", () => {
  const of = (bytes: number, type = "memory"): string[] => shown(memoryHints(machine, new Map([[type, bytes]]), new Map()));
  assert.deepEqual(of(2 * gi), ["0 true", "1 true", "0,1 false"]);
  assert.deepEqual(of(4 * gi), ["1 true", "0,1 false"]);
  assert.deepEqual(of(6 * gi), ["0,1 true"]);
  assert.deepEqual(of(mi, "hugepages-2Mi"), ["0 true", "0,1 false"]);
  assert.deepEqual(of(9 * gi), []);
});

const asking = (memory: string, name = "main", more: Record<string, string> = {}): Container => {
  const amounts = { cpu: "1", memory, ...more };
  return aContainer({ name, resources: { requests: amounts, limits: amounts } });
};
const podOf = (uid: string, ...containers: Container[]): NodePod => aNodePod({ containers }, { uid });
const anywhere: Hint = { preferred: false };

async function managerIn(
  t: TestContext,
  content?: string,
  own: typeof machine | undefined = machine,
): Promise<{ manager: MemoryManager; path: string; again(): MemoryManager }> {
  const dir = await mkdtemp(join(tmpdir(), "cox-memory-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const path = join(dir, "memory_manager_state");
  if (content !== undefined) await writeFile(path, content);
  const again = (): MemoryManager =>
    new MemoryManager({ machine: own, file: newCheckpointFile(path, memoryStateForm), log: discardLogger });
  return { manager: again(), path, again };
}

test("containers of Guaranteed pods get memory of NUMA nodes, and keep it across a restart of the agent", async (t) => {
  const { manager, path, again } = await managerIn(t);
  const pod = podOf("u1", asking("2Gi", "a", { "hugepages-2Mi": "512Mi" }), asking("4Gi", "b"));
  for (const container of pod.spec.containers) manager.allocate(pod, container, anywhere);
  const burstable = aNodePod({ containers: [aContainer({ resources: { requests: { memory: "1Gi" } } })] }, { uid: "u2" });
  manager.allocate(burstable, burstable.spec.containers[0] as Container, anywhere);
  assert.deepEqual([manager.nodesOf("u1", "a"), manager.nodesOf("u1", "b"), manager.nodesOf("u2", "main")], [[0], [1], []]);
  hasFields(JSON.parse(await readFile(path, "utf8")), {
    policyName: "Static",
    machineState: {
      0: {
        numberOfAssignments: 2,
        memoryMap: { memory: { allocatable: 3 * gi, reserved: 2 * gi, free: gi }, "hugepages-2Mi": { reserved: 512 * mi } },
        cells: [0],
      },
    },
    entries: { u1: { b: [{ numaAffinity: [1], type: "memory", size: 4 * gi }] } },
  });
  const after = again();
  after.allocate(pod, pod.spec.containers[1] as Container, anywhere);
  assert.deepEqual(after.nodesOf("u1", "b"), [1]);
  assert.deepEqual(shown(after.hints(pod, pod.spec.containers[1] as Container).get("memory")), ["1 true"]);
  const changed = [asking("4Gi", "b", { "hugepages-2Mi": "2Mi" }), asking("3Gi", "b")];
  for (const container of changed) assert.equal(after.hints(pod, container).size, 0, "it asks for something else");
  assert.deepEqual([after.hints(burstable, asking("1Gi")).size, after.podHints(burstable).size], [0, 0]);
  after.release([burstable]);
  assert.deepEqual(again().nodesOf("u1", "b"), []);
  assert.deepEqual(JSON.parse(await readFile(path, "utf8")).machineState[1].memoryMap.memory.free, 4 * gi);
});

test("NUMA nodes that serve an allocation together serve none alone until it is released", async (t) => {
  const { manager } = await managerIn(t);
  const large = podOf("u1", asking("6Gi"));
  manager.allocate(large, large.spec.containers[0] as Container, anywhere);
  assert.deepEqual(manager.nodesOf("u1", "main"), [0, 1]);
  const small = podOf("u2", asking("512Mi"));
  assert.deepEqual(shown(manager.podHints(small).get("memory")), ["0,1 false"]);
  manager.allocate(small, small.spec.containers[0] as Container, anywhere);
  assert.deepEqual(manager.nodesOf("u2", "main"), [0, 1]);
  manager.release([large]);
  assert.deepEqual(shown(manager.podHints(small).get("memory")), ["0,1 false"], "the large one still uses both");
  manager.release([]);
  assert.deepEqual(shown(manager.podHints(small).get("memory")), ["0 true", "1 true", "0,1 false"]);
});

test("releasing one of two pods keeps the allocation of the other, also in the state file", async (t) => {
  const { manager, path, again } = await managerIn(t);
  const first = podOf("u1", asking("1Gi", "a"), asking("1Gi", "b"));
  const second = podOf("u2", asking("1Gi", "a"), asking("1Gi", "b"));
  for (const pod of [first, second])
    for (const container of pod.spec.containers) manager.allocate(pod, container, { nodes: [1], preferred: true });
  manager.allocate(podOf("u1", asking("1Gi", "c")), asking("1Gi", "c"), { nodes: [0], preferred: true });
  assert.throws(() => manager.allocate(podOf("u3", asking("1Gi")), asking("1Gi"), { nodes: [1], preferred: true }));
  await rm(path);
  manager.release([first, second]);
  await assert.rejects(readFile(path), { code: "ENOENT" }, "nothing has changed, so nothing is written");
  manager.release([second]);
  for (const now of [manager, again()]) {
    const nodes = ["u1", "u2"].flatMap((uid) => ["a", "b", "c"].map((name) => now.nodesOf(uid, name)));
    assert.deepEqual(nodes, [[], [], [], [1], [1], []]);
  }
  const { machineState, entries } = JSON.parse(await readFile(path, "utf8"));
  assert.deepEqual(Object.keys(entries), ["u2"]);
  assert.deepEqual(
    [machineState[0].memoryMap.memory.free, machineState[1].memoryMap.memory.free, machineState[1].numberOfAssignments],
    [3 * gi, 2 * gi, 2],
  );
});

test("a pod of which only the second container has memory yet gets no hints for other amounts", async (t) => {
  const { manager } = await managerIn(t);
  const pod = podOf("u1", asking("1Gi", "a"), asking("1Gi", "b"));
  assert.deepEqual(shown(manager.podHints(pod).get("memory")), ["0 true", "1 true", "0,1 false"]);
  manager.allocate(pod, pod.spec.containers[1] as Container, { nodes: [1], preferred: true });
  assert.equal(manager.podHints(pod).size, 0);
});

test("a pod whose init container has memory already gets its node as hint", async (t) => {
  const { manager } = await managerIn(t);
  const pod = aNodePod({ initContainers: [asking("1Gi", "setup")], containers: [asking("1Gi")] }, { uid: "u1" });
  manager.allocate(pod, asking("1Gi", "setup"), { nodes: [1], preferred: true });
  assert.deepEqual(shown(manager.podHints(pod).get("memory")), ["1 true"]);
});

test("the allocatable memory is that of each node and type of which there is some", async (t) => {
  const { manager } = await managerIn(t);
  const own = (node: number) => manager.allocatable().filter(({ nodes }) => nodes[0] === node);
  assert.deepEqual(own(0), [
    { nodes: [0], type: "hugepages-2Mi", sizeBytes: gi },
    { nodes: [0], type: "memory", sizeBytes: 3 * gi },
  ]);
  assert.deepEqual(own(1), [{ nodes: [1], type: "memory", sizeBytes: 4 * gi }]);
  const pages = new Map([[gi, 0]]);
  const without = emptyMemory([{ id: 0, memoryBytes: 5 * gi, hugePages: pages }], reserved, { memory: "1Gi" });
  const { manager: other } = await managerIn(t, undefined, without);
  assert.deepEqual(
    other.allocatable().map(({ type }) => type),
    ["memory"],
  );
});

test("a hint with too little memory is extended; a preferred one is an error", async (t) => {
  const { manager } = await managerIn(t);
  const pod = podOf("u1", asking("4Gi"));
  const [container] = pod.spec.containers as [Container];
  assert.throws(() => manager.allocate(pod, container, { nodes: [0], preferred: true }), {
    message: "[memorymanager] failed to find the extended preferred hint",
  });
  manager.allocate(pod, container, { nodes: [0], preferred: false });
  assert.deepEqual(manager.nodesOf("u1", "main"), [0, 1]);
  assert.throws(() => manager.allocate(podOf("u2", asking("8Gi")), asking("8Gi"), anywhere), {
    message: "[memorymanager] failed to get the default NUMA affinity, no NUMA nodes with enough memory is available",
  });
});

test("memory of init containers is reused, and free once the next container has started", async (t) => {
  const { manager, path } = await managerIn(t);
  const init = asking("3Gi", "init");
  const main = asking("2Gi");
  const pod = aNodePod({ initContainers: [init], containers: [main] }, { uid: "u1" });
  manager.allocate(pod, init, { nodes: [0], preferred: true });
  manager.allocate(pod, main, { nodes: [0], preferred: false });
  const free = async (): Promise<number> => JSON.parse(await readFile(path, "utf8")).machineState[0].memoryMap.memory.free;
  assert.deepEqual([manager.nodesOf("u1", "main"), await free()], [[0], 0]);
  manager.started(pod, init);
  assert.equal(manager.blocksOf("u1", "init").length, 1);
  manager.started(pod, main);
  assert.equal(manager.blocksOf("u1", "init").length, 0);
});

test("a container reuses up to its request from earlier init containers, each byte once", async (t) => {
  const { manager } = await managerIn(t);
  const inits = [asking("2Gi", "first"), asking("2Gi", "second")];
  const main = asking("2560Mi");
  const pod = aNodePod({ initContainers: inits, containers: [main] }, { uid: "u1" });
  const onNode = { nodes: [1], preferred: true };
  for (const container of [...inits, main]) manager.allocate(pod, container, onNode);
  const sizes = ["first", "second", "main"].map((name) => manager.blocksOf("u1", name).map(({ sizeBytes }) => sizeBytes / mi));
  assert.deepEqual(sizes, [[0], [0], [2560]], "the second one had taken over all of the first");
  const [larger, smaller] = [asking("3Gi", "first"), asking("1Gi", "second")];
  const other = aNodePod({ initContainers: [larger, smaller], containers: [asking("1Gi")] }, { uid: "u2" });
  for (const container of [larger, smaller, asking("1Gi")]) manager.allocate(other, container, { nodes: [0], preferred: true });
  assert.deepEqual(
    ["first", "second", "main"].map((name) => manager.blocksOf("u2", name).map(({ sizeBytes }) => sizeBytes / mi)),
    [[1024], [1024], [1024]],
  );
});

test("what init containers leave is the most of any of them, on each set of nodes, and is used up by others", () => {
  const block = (node: number, gigabytes: number) => ({ nodes: [node], type: "memory", sizeBytes: gigabytes * gi });
  let reusable = reusableAfter(new Map(), [block(0, 2), block(1, 1)], true);
  reusable = reusableAfter(reusable, [block(0, 3)], true);
  reusable = reusableAfter(reusable, [block(0, 1)], true);
  const left = () => [0, 1].map((node) => reusableOn(reusable, [node], "memory") / gi);
  assert.deepEqual(left(), [3, 1]);
  reusable = reusableAfter(reusable, [block(0, 2)], false);
  assert.deepEqual(left(), [1, 1]);
  reusable = reusableAfter(reusable, [block(0, 2)], false);
  assert.deepEqual([...left(), reusableOn(reusable, [0], "hugepages-2Mi")], [0, 1, 0]);
});

for (const { name, content, want } of [
  { name: "no JSON", content: "{", want: /^start memory manager error: / },
  {
    name: "another policy",
    content: memoryStateForm.encode({ policy: "None", nodes: new Map(), assigned: new Map() }),
    want: /\[memorymanager\] configured policy "Static" differs from state checkpoint policy "None"$/,
  },
  {
    name: "another machine",
    content: memoryStateForm.encode({ policy: "Static", nodes: new Map([...machine].slice(1)), assigned: new Map() }),
    want: /the expected machine state is different from the real one$/,
  },
  {
    name: "pods without NUMA nodes",
    content: memoryStateForm.encode({
      policy: "Static",
      nodes: new Map(),
      assigned: new Map([["u", new Map([["c", []]])]]),
    }),
    want: /machine state can not be empty when it has memory assignments$/,
  },
  {
    name: "a type that is not there",
    content: memoryStateForm.encode({
      policy: "Static",
      nodes: machine,
      assigned: new Map([["u", new Map([["c", [{ nodes: [0], type: "hugepages-1Gi", sizeBytes: 1 }]]])]]),
    }),
    want: /\(pod: u, container: c\) the memory assignment uses memory resource that does not exist$/,
  },
  {
    name: "a node that is not there",
    content: memoryStateForm.encode({
      policy: "Static",
      nodes: machine,
      assigned: new Map([["u", new Map([["c", [{ nodes: [7], type: "memory", sizeBytes: 1 }]]])]]),
    }),
    want: /\(pod: u, container: c\) the memory assignment uses the NUMA that does not exist$/,
  },
  {
    name: "a second node that is not there",
    content: memoryStateForm.encode({
      policy: "Static",
      nodes: machine,
      assigned: new Map([["u", new Map([["c", [{ nodes: [0, 7], type: "memory", sizeBytes: 1 }]]])]]),
    }),
    want: /\(pod: u, container: c\) the memory assignment uses the NUMA that does not exist$/,
  },
]) {
  test(`a memory state of ${name} keeps the agent from starting`, async (t) => {
    await assert.rejects(managerIn(t, content), { message: want });
  });
}

test("memory states are read as upstream's kubelet writes them", () => {
  const table = '{"total":2048,"systemReserved":512,"allocatable":1536,"reserved":512,"free":1024}';
  const content = `{"policyName":"static","machineState":{"0":{"numberOfAssignments":0,"memoryMap":{"memory":${table}},"cells":[]}},"entries":{"pod":{"container1":[{"numaAffinity":[0],"type":"memory","size":512}]}},"checksum":4215593881}`;
  assert.equal(memoryStateForm.encode(memoryStateForm.decode(content)), content);
  assert.throws(() => memoryStateForm.decode(content.replace("1536", "1535")), { message: "checkpoint is corrupted" });
  assert.throws(() => decodeCheckpoint(memoryStateForm, "null"), { message: "checkpoint is corrupted" });
});

test("memory is reserved on the nodes that have its type, as much as possible on each in order, and released likewise", () => {
  const of = (nodes: typeof machine, type: string) =>
    [0, 1].map((id) => {
      const node = nodes.get(id) ?? assert.fail();
      const { free = 0, reserved: taken = 0 } = node.tables.get(type) ?? {};
      return [node.assignments, [...node.group], taken / mi, free / mi];
    });
  const pages = { nodes: [0, 1], type: "hugepages-2Mi", sizeBytes: 6 * mi };
  const paged = moveBlock(machine, pages, 1);
  assert.deepEqual(of(paged, "hugepages-2Mi"), [
    [1, [0, 1], 6, 1018],
    [0, [1], 0, 0],
  ]);
  const block = { nodes: [0, 1], type: "memory", sizeBytes: 4 * gi };
  const moved = moveBlock(machine, block, 1);
  assert.deepEqual(of(moved, "memory"), [
    [1, [0, 1], 3072, 0],
    [1, [0, 1], 1024, 3072],
  ]);
  assert.deepEqual(of(moveBlock(moved, block, -1), "memory"), of(machine, "memory"));
});

test("without an affinity the best nodes are taken, which must be preferred if the hint was", () => {
  const grouped = moveBlock(machine, { nodes: [0, 1], type: "memory", sizeBytes: 4 * gi }, 1);
  const request = new Map([["memory", gi]]);
  assert.deepEqual(chooseNodes(grouped, request, { preferred: false }, new Map()), [0, 1]);
  assert.throws(() => chooseNodes(grouped, request, { preferred: true }, new Map()), {
    message: "[memorymanager] failed to find the default preferred hint",
  });
  assert.deepEqual(chooseNodes(machine, request, { preferred: true }, new Map()), [0]);
});

test("a hint with too little memory is extended by as few nodes as possible, or not at all", () => {
  const sizes = [2, 2, 8];
  const nodes = sizes.map((size, id) => ({ id, memoryBytes: size * gi, hugePages: new Map<number, number>() }));
  const three = emptyMemory(nodes, [{ numaNode: 2, limits: { memory: "1Gi" } }], { memory: "1Gi" });
  const choose = (gigabytes: number, on: number[]) =>
    chooseNodes(three, new Map([["memory", gigabytes * gi]]), { nodes: on, preferred: false }, new Map());
  assert.deepEqual(
    [choose(3, [0]), choose(5, [0]), choose(10, [1])],
    [
      [0, 1],
      [0, 2],
      [0, 1, 2],
    ],
  );
  assert.throws(() => choose(12, [0]), {
    message: "[memorymanager] failed to find NUMA nodes to extend the current topology hint",
  });
});

test("a container takes over each type of memory from an init container separately", async (t) => {
  const { manager } = await managerIn(t);
  const init = asking("2Gi", "init", { "hugepages-2Mi": "64Mi" });
  const main = asking("1Gi", "main", { "hugepages-2Mi": "16Mi" });
  const plain = asking("512Mi", "plain");
  const pod = aNodePod({ initContainers: [init, asking("1Mi", "late")], containers: [main, plain] }, { uid: "u1" });
  for (const container of [init, main, plain]) manager.allocate(pod, container, { nodes: [0], preferred: true });
  const left = (name: string) => manager.blocksOf("u1", name).map(({ type, sizeBytes }) => `${type} ${sizeBytes / mi}`);
  assert.deepEqual(
    [left("init").toSorted(), left("main").toSorted(), left("plain"), left("late")],
    [["hugepages-2Mi 48", "memory 512"], ["hugepages-2Mi 16", "memory 1024"], ["memory 512"], []],
  );
});
