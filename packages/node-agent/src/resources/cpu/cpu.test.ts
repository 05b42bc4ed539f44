import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { newFeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import type { Container } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import type { NodePod } from "../../pod/pod.ts";
import { aContainer, aNodePod } from "../../testing/builders.ts";
import { newCheckpointFile } from "../checkpoint-file.ts";
import type { Cpu } from "../topology/machine-topology.ts";
import { CpuManager } from "./cpu-manager.ts";
import { parseCpuPolicyOptions } from "./cpu-policy-options.ts";
import { formatCpus, parseCpus } from "./cpu-set.ts";
import { cpuStateForm } from "./cpu-state.ts";
import { chooseCpus, cpuHints, reservedCpus, type StaticCpus } from "./static-cpus.ts";
import { takeCpus, takeCpusEvenly } from "./take-cpus.ts";

for (const { text, want } of [
  { text: "", want: [] },
  { text: "3,0-2,2", want: [0, 1, 2, 3] },
  { text: "7", want: [7] },
  { text: "65535", want: [65_535] },
]) {
  test(`CPUs ${JSON.stringify(text)} are ${want}`, () => assert.deepEqual(parseCpus(text), want));
}
for (const text of ["a", "1-", "3-1", "1,,2", "-1", "1-2-3", "0-99999999", "65536"]) {
  test(`CPUs ${JSON.stringify(text)} are refused`, () => assert.throws(() => parseCpus(text)));
}
test("CPUs are written as ranges", () => assert.equal(formatCpus([0, 1, 2, 4, 6, 7]), "0-2,4,6-7"));

/** Two threads per core; the second thread of core n is CPU n + count/2, as on Linux. */
function machineOf(sockets: number, nodesPerSocket: number, coresPerNode: number): Cpu[] {
  const cores = sockets * nodesPerSocket * coresPerNode;
  return Array.from({ length: 2 * cores }, (_, id) => {
    const core = id % cores;
    const numaNode = Math.floor(core / coresPerNode);
    return { id, core, socket: Math.floor(numaNode / nodesPerSocket), numaNode };
  });
}
/** NUMA node and socket 0: 0-3 and 8-11; 1: 4-7 and 12-15. */
const twoSockets = machineOf(2, 1, 4);

test("what is taken beyond the reusable CPUs comes from the hint's nodes, too, and none of it is reserved", () => {
  const settings = { machine: twoSockets, reserved: [1, 9], options: { wholeCoresOnly: false, acrossNodes: false } };
  // Of node 1 only one core is free, so that it would be taken first without the hint.
  const state = { policy: "static", shared: parseCpus("1-4,9-12"), assigned: new Map() };
  const request = { count: 4, hint: { nodes: [0], preferred: true }, reusable: [0, 8] };
  assert.equal(formatCpus(chooseCpus(settings, state, request)), "0,2,8,10");
});

for (const { wholeCoresOnly, want } of [
  { wholeCoresOnly: true, want: [4, 6] },
  { wholeCoresOnly: false, want: [5, 5] },
])
  test(`ten CPUs across two nodes are ${want.join(" and ")} ${wholeCoresOnly ? "with" : "without"} full-pcpus-only`, () => {
    const settings = { machine: twoSockets, reserved: [], options: { wholeCoresOnly, acrossNodes: true } };
    const state = { policy: "static", shared: parseCpus("0-15"), assigned: new Map() };
    const request = { count: 10, hint: { nodes: undefined, preferred: true }, reusable: [] };
    const chosen = chooseCpus(settings, state, request);
    const onFirst = chosen.filter((id) => twoSockets[id]?.numaNode === 0).length;
    assert.deepEqual([onFirst, chosen.length - onFirst].toSorted(), want);
  });

for (const { name, machine = twoSockets, free, count, want } of [
  { name: "nothing", free: "0-15", count: 0, want: "" },
  { name: "a whole core", free: "0-15", count: 2, want: "0,8" },
  { name: "a thread of the first core", free: "0-15", count: 1, want: "0" },
  { name: "the other thread of a core that is begun", free: "1-15", count: 1, want: "8" },
  { name: "a whole socket", free: "0-15", count: 8, want: "0-3,8-11" },
  { name: "a whole socket and a core", free: "0-15", count: 10, want: "0-4,8-12" },
  { name: "the whole socket that is left", free: "1-15", count: 8, want: "4-7,12-15" },
  { name: "cores of the fuller socket", free: "2-15", count: 4, want: "2-3,10-11" },
  { name: "single threads when no core is whole", free: "0,2,5,7", count: 3, want: "0,2,5" },
  { name: "a NUMA node of a socket with several", machine: machineOf(1, 2, 2), free: "0-7", count: 4, want: "0-1,4-5" },
  {
    name: "a whole node past one in use and one that is begun",
    machine: machineOf(3, 1, 2),
    free: "3-5,9-11",
    count: 4,
    want: "4-5,10-11",
  },
  { name: "a socket before its NUMA nodes", machine: machineOf(2, 2, 1), free: "1-7", count: 4, want: "2-3,6-7" },
] as { name: string; machine?: Cpu[]; free: string; count: number; want: string }[]) {
  test(`assigns ${name}: ${count} of ${free}`, () => assert.equal(formatCpus(takeCpus(machine, parseCpus(free), count)), want));
}

test("requesting more CPUs than are free is an error", () => {
  const message = "not enough cpus available to satisfy request";
  assert.throws(() => takeCpus(twoSockets, parseCpus("0-2"), 4), { message });
  assert.throws(() => takeCpusEvenly(twoSockets, parseCpus("0-2"), 4, 1), { message });
});

for (const { free, count, group, want } of [
  { free: "0-15", count: 0, group: 2, want: "" },
  { free: "0-15", count: -1, group: 2, want: "" },
  { free: "0-15", count: 3, group: 2, want: "0-1,8" },
  { free: "0-15", count: 6, group: 1, want: "0-2,8-10" },
  { free: "0-15", count: 10, group: 1, want: "0-2,4-6,8-9,12-13" },
  { free: "0-15", count: 12, group: 2, want: "0-2,4-6,8-10,12-14" },
  { free: "0-1,4-7", count: 4, group: 1, want: "4-7" },
]) {
  test(`spreads ${count} of ${free} over the NUMA nodes, in groups of ${group}`, () => {
    const got = takeCpusEvenly(twoSockets, parseCpus(free), count, group);
    assert.equal(got.length, Math.max(0, count));
    assert.equal(formatCpus(got), formatCpus(parseCpus(want)));
  });
}

test("CPUs are reserved from the lowest cores, or by number", () => {
  assert.equal(formatCpus(reservedCpus(twoSockets, 1500, [])), "0,8");
  assert.equal(formatCpus(reservedCpus(twoSockets, 1001, [])), "0,8", "a part of a CPU is a whole one");
  assert.deepEqual(reservedCpus(twoSockets, 2000, [3, 5]), [3, 5]);
  assert.throws(() => reservedCpus(twoSockets, 1000, [3, 5]), /\(size of 3,5 did not equal 1\)/);
  assert.throws(() => reservedCpus(twoSockets, 0, []), /requires systemreserved.cpu \+ kubereserved.cpu to be greater than zero/);
  assert.throws(() => reservedCpus(twoSockets, 99_000, []), /unable to reserve the required amount of CPUs/);
});

test("CPU hints are all sets of NUMA nodes with enough CPUs; preferred are the smallest an empty machine needs", () => {
  const shown = (hints: ReturnType<typeof cpuHints>): string[] => hints.map(({ nodes, preferred }) => `${nodes} ${preferred}`);
  assert.deepEqual(shown(cpuHints(twoSockets, parseCpus("1-15"), [], 8)), ["1 true", "0,1 false"]);
  assert.deepEqual(shown(cpuHints(twoSockets, parseCpus("0-15"), [], 9)), ["0,1 true"]);
  assert.deepEqual(shown(cpuHints(twoSockets, parseCpus("1-7,9-15"), [0, 8], 2)), ["0 true", "0,1 false"], "with what is reused");
  assert.deepEqual(shown(cpuHints(twoSockets, parseCpus("0-2"), [], 4)), []);
  assert.deepEqual(shown(cpuHints(twoSockets, parseCpus("1-3,5-15"), [0, 4], 2)), ["0,1 false"], "one node lacks one of them");
});

const cpus = (count: number | string, name = "main"): Container =>
  aContainer({
    name,
    resources: { requests: { cpu: String(count), memory: "1Gi" }, limits: { cpu: String(count), memory: "1Gi" } },
  });

const plain = { wholeCoresOnly: false, acrossNodes: false };
const settings: StaticCpus = { machine: twoSockets, reserved: [0, 8], options: plain };

async function managerIn(
  t: TestContext,
  own: StaticCpus | undefined = settings,
  content?: string,
): Promise<{ manager: CpuManager; path: string; again(): CpuManager }> {
  const dir = await mkdtemp(join(tmpdir(), "cox-cpu-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const path = join(dir, "cpu_manager_state");
  if (content !== undefined) await writeFile(path, content);
  const again = (): CpuManager =>
    new CpuManager({ settings: own, file: newCheckpointFile(path, cpuStateForm), path, log: discardLogger });
  return { manager: again(), path, again };
}
const anywhere = { preferred: false };
const podOf = (uid: string, ...containers: Container[]): NodePod => aNodePod({ containers }, { uid });

test("containers of Guaranteed pods that request integer CPUs get exclusive CPUs, and keep them across a restart", async (t) => {
  const { manager, path, again } = await managerIn(t);
  const pod = podOf("u1", cpus(2), cpus("500m", "part"));
  for (const container of pod.spec.containers) manager.allocate(pod, container, anywhere);
  const burstable = aNodePod({ containers: [aContainer({ resources: { requests: { cpu: "2" } } })] }, { uid: "u2" });
  manager.allocate(burstable, burstable.spec.containers[0] as Container, anywhere);
  assert.equal(formatCpus(manager.cpusOf("u1", "main")), "1,9");
  for (const [uid, name] of [
    ["u1", "part"],
    ["u2", "main"],
  ] as const)
    assert.equal(formatCpus(manager.cpusOf(uid, name)), "0,2-8,10-15", "the others share the rest");
  assert.deepEqual(manager.exclusiveCpusOf("u2", "main"), []);
  assert.partialDeepStrictEqual(JSON.parse(await readFile(path, "utf8")), {
    policyName: "static",
    defaultCpuSet: "0,2-8,10-15",
    entries: { u1: { main: "1,9" } },
  });
  const after = again();
  after.allocate(pod, pod.spec.containers[0] as Container, anywhere);
  assert.equal(formatCpus(after.cpusOf("u1", "main")), "1,9");
  await rm(path);
  after.release([pod]);
  await assert.rejects(readFile(path), { code: "ENOENT" }, "nothing has changed, so nothing is written");
  after.release([burstable]);
  assert.equal(formatCpus(again().cpusOf("u1", "main")), "0-15");
});

test("CPUs are assigned from the hint's NUMA nodes first, then from others", async (t) => {
  const { manager } = await managerIn(t);
  const pod = podOf("u1", cpus(2), cpus(8, "large"));
  manager.allocate(pod, pod.spec.containers[0] as Container, { nodes: [1], preferred: true });
  assert.equal(formatCpus(manager.cpusOf("u1", "main")), "4,12");
  manager.allocate(pod, pod.spec.containers[1] as Container, { nodes: [1], preferred: false });
  assert.equal(formatCpus(manager.cpusOf("u1", "large")), "1,5-7,9,13-15");
  assert.throws(() => manager.allocate(podOf("u2", cpus(7)), cpus(7), anywhere), {
    message: "not enough cpus available to satisfy request",
  });
});

test("CPUs of init containers are reused by later containers", async (t) => {
  const { manager } = await managerIn(t);
  const init = cpus(4, "init");
  const pod = aNodePod({ initContainers: [init], containers: [cpus(2, "a"), cpus(4, "b")] }, { uid: "u1" });
  for (const container of [init, ...pod.spec.containers]) manager.allocate(pod, container, anywhere);
  assert.deepEqual(
    ["init", "a", "b"].map((name) => formatCpus(manager.cpusOf("u1", name))),
    ["1-2,9-10", "1,9", "2-3,10-11"],
  );
});

test("the CPUs of every init container are reused, and a pod needs as many as its largest one", async (t) => {
  const { manager } = await managerIn(t);
  const inits = [cpus(6, "first"), cpus(2, "second")];
  const pod = aNodePod({ initContainers: inits, containers: [cpus(6)] }, { uid: "u1" });
  const nodes = () => (manager.podHints(pod).get("cpu") ?? []).map((hint) => `${hint.nodes} ${hint.preferred}`);
  assert.deepEqual(nodes(), ["0 true", "1 true", "0,1 false"]);
  for (const container of [...inits, ...pod.spec.containers]) manager.allocate(pod, container, anywhere);
  assert.deepEqual(
    ["first", "second", "main"].map((name) => formatCpus(manager.cpusOf("u1", name))),
    ["1-3,9-11", "1,9", "1-3,9-11"],
  );
  const large = aNodePod({ initContainers: [cpus(9, "first")], containers: [cpus(2)] }, { uid: "u2" });
  assert.deepEqual(manager.podHints(large).get("cpu"), [], "eight are left");
});

test("with full-pcpus-only a container gets whole cores or nothing", async (t) => {
  const { manager } = await managerIn(t, { ...settings, options: { ...plain, wholeCoresOnly: true } });
  assert.throws(() => manager.allocate(podOf("u1", cpus(3)), cpus(3), anywhere), {
    reason: "SMTAlignmentError",
    message: "SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2",
  });
  manager.allocate(podOf("u1", cpus(4)), cpus(4), anywhere);
  assert.equal(formatCpus(manager.cpusOf("u1", "main")), "1-2,9-10");
});

test("a pod's hints cover all its containers together, and what it already holds", async (t) => {
  const { manager } = await managerIn(t);
  const pod = podOf("u1", cpus(4, "a"), cpus(4, "b"));
  const shown = (): string[] => (manager.podHints(pod).get("cpu") ?? []).map(({ nodes, preferred }) => `${nodes} ${preferred}`);
  assert.deepEqual(shown(), ["1 true", "0,1 false"]);
  for (const container of pod.spec.containers) manager.allocate(pod, container, { nodes: [1], preferred: true });
  assert.deepEqual(shown(), ["1 true", "0,1 false"]);
  const grown = podOf("u1", cpus(2, "a"), cpus(4, "b"));
  assert.deepEqual(manager.hints(grown, cpus(2, "a")).get("cpu"), [], "it has other CPUs than it asks for");
  assert.deepEqual(manager.podHints(grown).get("cpu"), []);
  const more = podOf("u1", cpus(4, "a"), cpus(6, "b"));
  assert.deepEqual([manager.hints(more, cpus(6, "b")).get("cpu"), manager.podHints(more).get("cpu")], [[], []]);
  assert.equal(manager.hints(aNodePod(), aContainer()).size, 0);
  assert.equal(manager.podHints(aNodePod()).size, 0);
  const [first] = pod.spec.containers as [Container];
  assert.deepEqual(
    manager.hints(pod, first).get("cpu"),
    manager.podHints(podOf("u1", first)).get("cpu"),
    "those of what it holds",
  );
});

test("a pod that holds more CPUs than it needs at a time keeps to the nodes of all of them", async (t) => {
  const { manager } = await managerIn(t);
  const pod = aNodePod({ initContainers: [cpus(2, "init")], containers: [cpus(2)] }, { uid: "u1" });
  manager.allocate(pod, cpus(2, "init"), { nodes: [0], preferred: true });
  manager.allocate(podOf("other", cpus(1)), cpus(1), anywhere); // what the init container had is not reused after another pod
  manager.allocate(pod, pod.spec.containers[0] as Container, { nodes: [1], preferred: true });
  assert.deepEqual(manager.podHints(pod).get("cpu"), [{ nodes: [0, 1], preferred: false }]);
});

test("with the policy none no exclusive CPUs are assigned, and the state file says so", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "cox-cpu-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const path = join(dir, "cpu_manager_state");
  const manager = new CpuManager({ settings: undefined, file: newCheckpointFile(path, cpuStateForm), path, log: discardLogger });
  manager.allocate(podOf("u1", cpus(2)), cpus(2), anywhere);
  assert.deepEqual(
    [manager.cpusOf("u1", "main"), manager.allocatable(), manager.podHints(podOf("u1", cpus(2))).size],
    [[], [], 0],
  );
  assert.equal(await readFile(path, "utf8"), '{"policyName":"none","defaultCpuSet":"","checksum":1353318690}');
});

for (const { name, content, want } of [
  {
    name: "no JSON",
    content: "{",
    want: /could not restore state from checkpoint: .*, please drain this node and delete the CPU manager checkpoint file "\/.*cpu_manager_state" before restarting Kubelet$/,
  },
  {
    name: "a wrong checksum",
    content: '{"policyName":"static","defaultCpuSet":"0-15","checksum":1}',
    want: /could not restore state from checkpoint: checkpoint is corrupted, please drain/,
  },
  {
    name: "another policy",
    content: '{"policyName":"none","defaultCpuSet":"","checksum":1353318690}',
    want: /configured policy "static" differs from state checkpoint policy "none", please drain/,
  },
]) {
  test(`a state with ${name} keeps the agent from starting`, async (t) => {
    await assert.rejects(managerIn(t, settings, content), { message: want });
  });
}

for (const { name, shared, assigned, want } of [
  {
    name: "without the reserved CPUs",
    shared: "1-15",
    assigned: {},
    want: /^start cpu manager error: not all reserved cpus: "0,8" are present in defaultCpuSet: "1-15"$/,
  },
  {
    name: "of another machine",
    shared: "0-8",
    assigned: {},
    want: /current set of available CPUs "0-15" doesn't match with CPUs in state "0-8"/,
  },
  {
    name: "that gives a CPU twice",
    shared: "0-15",
    assigned: { u: { c: "1" } },
    want: /pod: u, container: c cpuset: "1" overlaps with default cpuset "0-15"/,
  },
  {
    name: "of a larger machine",
    shared: "0-16",
    assigned: {},
    want: /current set of available CPUs "0-15" doesn't match with CPUs in state "0-16"/,
  },
  {
    name: "that gives one of several CPUs twice",
    shared: "0-14",
    assigned: { u: { c: "14-15" } },
    want: /cpuset: "14-15" overlaps with default cpuset "0-14"/,
  },
  { name: "without shared CPUs", shared: "", assigned: { u: { c: "1" } }, want: /default cpuset cannot be empty/ },
] as { name: string; shared: string; assigned: Record<string, Record<string, string>>; want: RegExp }[]) {
  test(`a state ${name} keeps the agent from starting`, async (t) => {
    const of = new Map(
      Object.entries(assigned).map(([uid, containers]) => [
        uid,
        new Map(Object.entries(containers).map(([container, text]) => [container, parseCpus(text)])),
      ]),
    );
    const content = cpuStateForm.encode({ policy: "static", shared: parseCpus(shared), assigned: of });
    await assert.rejects(managerIn(t, settings, content), { message: want });
  });
}

for (const [defaultCpuSet, of, checksum, want] of [
  ["a-b", "1", 2007098299, /^could not parse default cpu set "a-b": ./],
  ["0-3", "3-1", 4016587247, /^could not parse cpuset "3-1" for container "c" in pod "u": ./],
] as const) {
  test(`a state with the CPUs ${defaultCpuSet} and ${of} is refused with where they are`, () => {
    const text = JSON.stringify({ policyName: "static", defaultCpuSet, entries: { u: { c: of } }, checksum });
    assert.throws(() => cpuStateForm.decode(text), { message: want });
  });
}

test("states are read as upstream's kubelet writes them", () => {
  const entries = '"entries":{"pod":{"container1":"4-6","container2":"1-3"}}';
  const state = cpuStateForm.decode(`{"policyName":"none","defaultCpuSet":"1-3",${entries},"checksum":3610638499}`);
  assert.deepEqual(state, {
    policy: "none",
    shared: [1, 2, 3],
    assigned: new Map([
      [
        "pod",
        new Map([
          ["container1", [4, 5, 6]],
          ["container2", [1, 2, 3]],
        ]),
      ],
    ]),
  });
  assert.match(cpuStateForm.encode(state), /"checksum":3610638499/);
});

test("options of the policy need their gates", () => {
  const parse = (gates: Record<string, boolean>, options: Record<string, string>, policy = "static") =>
    parseCpuPolicyOptions(policy, options, newFeatureGates("kubelet", gates));
  const on = { CPUManagerPolicyOptions: true };
  assert.deepEqual(parse(on, { "full-pcpus-only": "true" }), { wholeCoresOnly: true, acrossNodes: false });
  assert.deepEqual(parse({}, {}), plain);
  assert.throws(() => parse({ CPUManagerPolicyOptions: false }, { "full-pcpus-only": "true" }), {
    message:
      'CPU Manager policy options map[full-pcpus-only:true] require feature gates "CPUManager", "CPUManagerPolicyOptions" enabled',
  });
  assert.throws(() => parse(on, { "distribute-cpus-across-numa": "true" }), {
    message: 'CPU Manager Policy Alpha-level Options not enabled, but option "distribute-cpus-across-numa" provided',
  });
  assert.deepEqual(
    parse({ ...on, CPUManagerPolicyAlphaOptions: true }, { "distribute-cpus-across-numa": "1" }).acrossNodes,
    true,
  );
  for (const text of ["0", "f", "F", "false", "FALSE", "False"])
    assert.equal(parse(on, { "full-pcpus-only": text }).wholeCoresOnly, false, text);
  for (const text of ["1", "t", "T", "TRUE", "True"])
    assert.equal(parse(on, { "full-pcpus-only": text }).wholeCoresOnly, true, text);
  assert.throws(() => parse({ ...on, CPUManagerPolicyBetaOptions: false }, { "full-pcpus-only": "true" }), {
    message: 'CPU Manager Policy Beta-level Options not enabled, but option "full-pcpus-only" provided',
  });
  assert.throws(() => parse(on, { faster: "true" }), { message: 'unknown CPU Manager Policy option: "faster"' });
  assert.throws(() => parse(on, { "full-pcpus-only": "maybe" }), /bad value for option "full-pcpus-only"/);
  assert.throws(() => parse(on, { "full-pcpus-only": "true" }, "none"), /None policy: received unsupported options/);
});

test("the CPUs of a pod's init container are not assigned to others while the pod starts", async (t) => {
  const { manager } = await managerIn(t);
  const init = cpus(4, "init");
  const first = aNodePod({ initContainers: [init], containers: [cpus(2)] }, { uid: "u1" });
  manager.allocate(first, init, anywhere);
  const second = podOf("u2", cpus(4));
  manager.allocate(second, second.spec.containers[0] as Container, anywhere);
  assert.deepEqual(
    [formatCpus(manager.cpusOf("u1", "init")), formatCpus(manager.cpusOf("u2", "main"))],
    ["1-2,9-10", "3-4,11-12"],
  );
});
