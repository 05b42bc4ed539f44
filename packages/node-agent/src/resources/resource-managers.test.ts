import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { newFeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newAgentConfig } from "../config.ts";
import { kubelet } from "../flags.ts";
import type { NodePod } from "../pod/pod.ts";
import type { CriInput } from "../runtime/cri-schema.ts";
import { containerLabels } from "../runtime/labels.ts";
import { RuntimeError } from "../runtime/runtime.ts";
import { aContainer, aNodePod } from "../testing/builders.ts";
import { type FakeRuntime, newFakeRuntime } from "../testing/fake-runtime.ts";
import { type OpenedManagers, openResourceManagers } from "./open-resource-managers.ts";
import { reservationsOf } from "./reservations.ts";
import type { MachineTopology } from "./topology/machine-topology.ts";

const gi = 1024 ** 3;
/** Two NUMA nodes with two CPUs and 4 GiB each. */
const topology: MachineTopology = {
  cpus: [0, 1, 2, 3].map((id) => ({ id, core: id, socket: id >> 1, numaNode: id >> 1 })),
  numaNodes: [0, 1].map((id) => ({ id, memoryBytes: 4 * gi, hugePages: new Map() })),
};

interface Setup extends OpenedManagers {
  runtime: FakeRuntime;
  active: NodePod[];
  /** A running container with the cpuset that was last written. */
  run(pod: NodePod, name: string): Promise<string>;
  moves: string[];
}

const open = (t: TestContext, ...argv: string[]): Promise<Setup> => openOn(t, topology, argv);

async function openOn(t: TestContext, machine: typeof topology, argv: readonly string[]): Promise<Setup> {
  const rootDir = await mkdtemp(join(tmpdir(), "cox-managers-"));
  t.after(() => rm(rootDir, { recursive: true, force: true }));
  const { values, set } = parseFlags(kubelet.flags, [
    "--container-runtime=remote",
    "--container-runtime-endpoint=unix:///run/c.sock",
    `--root-dir=${rootDir}`,
    "--system-reserved=cpu=1,memory=1Gi",
    "--eviction-hard=memory.available<0",
    "--reserved-memory=0:memory=1Gi",
    ...argv,
  ]);
  const config = newAgentConfig(values, set);
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  const moves: string[] = [];
  const names = new Map<string, string>();
  runtime.updateContainerResources = async (id, resources: CriInput<"LinuxContainerResources">) => {
    moves.push(`${names.get(id)} ${resources.cpusetCpus}`);
  };
  const active: NodePod[] = [];
  const opened = openResourceManagers({
    config,
    featureGates: newFeatureGates("kubelet", config.featureGates),
    topology: machine,
    capacity: { cpu: "4", memory: "8Gi" },
    reservations: reservationsOf(config, { cpuCount: 4 }),
    runtime,
    clock,
    log: discardLogger,
    activePods: () => active,
    onDevicesChange: () => undefined,
    onPluginRegistered: () => undefined,
    onDevicesAllocated: () => undefined,
  });
  return {
    ...opened,
    runtime,
    active,
    moves,
    async run(pod, name) {
      active.push(pod);
      const sandbox = await runtime.runPodSandbox({ metadata: { name: pod.metadata.name } }, "");
      const labels = containerLabels(pod, aContainer({ name }));
      const id = await runtime.createContainer(sandbox, { metadata: { name }, image: { image: "i" }, labels }, {});
      await runtime.startContainer(id);
      names.set(id, `${pod.metadata.uid}/${name}`);
      return id;
    },
  };
}

function guaranteed(uid: string, cpu: string, memory: string): NodePod {
  const amounts = { cpu, memory };
  return aNodePod({ containers: [aContainer({ resources: { requests: amounts, limits: amounts } })] }, { uid, name: uid });
}
const main = aContainer();

test("by default no manager is consulted, and containers run where they like", async (t) => {
  const { managers } = await open(t);
  const pod = guaranteed("u1", "2", "1Gi");
  assert.equal(managers.concerns(pod), false);
  assert.equal(await managers.admit(pod), undefined);
  assert.deepEqual(managers.placementOf(pod, main), {});
});

for (const policy of ["cpu-manager-policy=static", "memory-manager-policy=Static", "topology-manager-policy=best-effort"]) {
  test(`with --${policy} alone every pod concerns the managers`, async (t) => {
    const { managers } = await open(t, `--${policy}`);
    assert.equal(managers.concerns(aNodePod()), true);
  });
}

const everything = [
  "--cpu-manager-policy=static",
  "--memory-manager-policy=Static",
  "--topology-manager-policy=single-numa-node",
];

test("CPUs and memory of a container come from one NUMA node, or it is not admitted", async (t) => {
  const { managers, active } = await open(t, ...everything);
  const first = guaranteed("u1", "2", "1Gi");
  assert.equal(managers.concerns(first), true);
  assert.equal(await managers.admit(first), undefined);
  active.push(first);
  assert.deepEqual(managers.placementOf(first, main), { cpusetCpus: "2-3", cpusetMems: "1" }, "CPU 0 is reserved");
  const second = guaranteed("u2", "1", "1Gi");
  assert.equal(await managers.admit(second), undefined);
  active.push(second);
  assert.deepEqual(managers.placementOf(second, main), { cpusetCpus: "1", cpusetMems: "0" });
  assert.deepEqual(await managers.admit(guaranteed("u3", "1", "4Gi")), {
    reason: "TopologyAffinityError",
    message: "Resources cannot be allocated with Topology locality",
  });
  assert.deepEqual(managers.placementOf(aNodePod({}, { uid: "u4" }), aContainer()), { cpusetCpus: "0" }, "the others share");
});

test("a container's CPUs are of the node that has enough memory", async (t) => {
  const { managers } = await open(t, ...everything);
  const pod = guaranteed("u1", "1", "3500Mi");
  assert.equal(await managers.admit(pod), undefined, "node 0 has 3 GiB besides what is reserved");
  assert.deepEqual(managers.placementOf(pod, main), { cpusetCpus: "2", cpusetMems: "1" });
});

test("a pod that requests more than is available is rejected with UnexpectedAdmissionError", async (t) => {
  const { managers } = await open(t, "--cpu-manager-policy=static");
  assert.deepEqual(await managers.admit(guaranteed("u1", "4", "1Gi")), {
    reason: "UnexpectedAdmissionError",
    message: "Allocate failed due to not enough cpus available to satisfy request, which is unexpected",
  });
});

test("with full-pcpus-only whole cores are admitted, and what is none is rejected for that reason", async (t) => {
  const argv = [
    "--cpu-manager-policy=static",
    "--cpu-manager-policy-options=full-pcpus-only=true",
    "--feature-gates=CPUManagerPolicyOptions=true",
  ];
  const { managers } = await open(t, ...argv);
  assert.equal(await managers.admit(guaranteed("u1", "1", "1Gi")), undefined, "a core has one thread here");
  const cpus = topology.cpus.map((cpu) => ({ ...cpu, core: cpu.id >> 1 }));
  const threads = await openOn(t, { ...topology, cpus }, argv);
  assert.deepEqual(await threads.managers.admit(guaranteed("u1", "1", "1Gi")), {
    reason: "SMTAlignmentError",
    message: "SMT Alignment Error: requested 1 cpus not multiple cpus per core = 2",
  });
});

test("running containers are moved to the shared CPUs when these change", async (t) => {
  const { managers, run, active, moves, runtime } = await open(t, "--cpu-manager-policy=static");
  const shared = aNodePod({}, { uid: "shared" });
  const id = await run(shared, "main");
  await managers.reconcile();
  assert.deepEqual(moves.splice(0), ["shared/main 0-3"]);
  const pinned = guaranteed("pinned", "2", "1Gi");
  await managers.admit(pinned);
  await run(pinned, "main");
  await managers.reconcile();
  assert.deepEqual(moves.splice(0).sort(), ["pinned/main 2-3", "shared/main 0-1"]);
  await managers.reconcile();
  assert.deepEqual(moves, [], "the runtime knows");
  active.splice(active.indexOf(pinned), 1);
  const update = runtime.updateContainerResources;
  runtime.updateContainerResources = async () => {
    throw new RuntimeError("Unavailable", "not now");
  };
  await managers.reconcile();
  runtime.updateContainerResources = update;
  await managers.reconcile();
  assert.deepEqual(moves.splice(0), ["shared/main 0-3"], "what failed is tried again");
  runtime.exit(id, 0);
  const next = guaranteed("next", "2", "1Gi");
  await managers.admit(next);
  active.push(next);
  await managers.reconcile();
  assert.deepEqual(moves, [], "what has exited is not moved");
});

test("containers that have ended are forgotten: what runs again is moved again", async (t) => {
  const { managers, run, moves, runtime } = await open(t, "--cpu-manager-policy=static");
  for (const uid of ["a", "b", "c"]) await run(aNodePod({}, { uid }), "main");
  const all = ["a", "b", "c"].map((uid) => `${uid}/main 0-3`);
  await managers.reconcile();
  assert.deepEqual(moves.splice(0).sort(), all);
  const { listContainers } = runtime;
  runtime.listContainers = async () => [];
  await managers.reconcile();
  runtime.listContainers = listContainers;
  await managers.reconcile();
  assert.deepEqual(moves.splice(0).sort(), all);
});

test("a container that is gone when it is to be moved is no error", async (t) => {
  const { managers, run, runtime } = await open(t, "--cpu-manager-policy=static");
  const errors: string[] = [];
  t.mock.method(discardLogger, "error", (message: string) => void errors.push(message));
  await run(aNodePod({}, { uid: "shared" }), "main");
  let code: "NotFound" | "Unavailable" = "NotFound";
  runtime.updateContainerResources = async () => {
    throw new RuntimeError(code, "not now");
  };
  await managers.reconcile();
  assert.deepEqual(errors, []);
  code = "Unavailable";
  await managers.reconcile();
  assert.deepEqual(errors, ["cannot move a container to its CPUs"]);
});

test("a pod's resources are released when it has ended, but not before all sources have reported", async (t) => {
  const { managers, active, devices } = await open(t, "--cpu-manager-policy=static");
  const pod = guaranteed("u1", "2", "1Gi");
  const holders: string[] = [];
  devices.release = (pods) => void holders.push(pods.map(({ metadata }) => metadata.uid).join());
  await managers.admit(pod);
  active.push(pod);
  assert.equal((await managers.admit(guaranteed("u2", "2", "1Gi")))?.reason, "UnexpectedAdmissionError");
  active.pop();
  assert.equal(await managers.admit(guaranteed("u3", "2", "1Gi")), undefined);
  assert.deepEqual(managers.placementOf(pod, main), { cpusetCpus: "0-1" });
  assert.deepEqual(holders.slice(-1), ["u3"], "devices, too, are released of all but the pod that is admitted");
});

const twoContainers = (first: string, second: string): NodePod => {
  const of = (name: string, cpu: string) => {
    const amounts = { cpu, memory: "1Gi" };
    return aContainer({ name, resources: { requests: amounts, limits: amounts } });
  };
  return aNodePod({ containers: [of("first", first), of("second", second)] }, { uid: "two", name: "two" });
};

test("CPUs of a pod that is rejected for its second container are shared again from the next check on", async (t) => {
  const { managers, cpu, active } = await open(t, "--cpu-manager-policy=static");
  const shared = aNodePod({}, { uid: "shared" });
  active.push(shared);
  assert.equal((await managers.admit(twoContainers("2", "4")))?.reason, "UnexpectedAdmissionError");
  assert.deepEqual(cpu.exclusiveCpusOf("two", "first"), [2, 3]);
  await managers.reconcile();
  assert.deepEqual(managers.placementOf(shared, main), { cpusetCpus: "0-3" });
});

test("a check during the admission of a pod keeps what its first container was given", async (t) => {
  const { managers, cpu, devices } = await open(t, "--cpu-manager-policy=static");
  const pod = twoContainers("2", "1");
  devices.allocate = async (_, { name }) => {
    if (name === "second") await managers.reconcile();
  };
  assert.equal(await managers.admit(pod), undefined);
  assert.deepEqual([cpu.exclusiveCpusOf("two", "first"), cpu.exclusiveCpusOf("two", "second")], [[2, 3], [1]]);
});

for (const { argv, want } of [
  { argv: ["--cpu-manager-policy=dynamic"], want: 'unknown policy: "dynamic"' },
  { argv: ["--memory-manager-policy=static"], want: 'unknown policy: "static"' },
  {
    argv: ["--cpu-manager-policy=static", "--system-reserved=cpu=0"],
    want: "[cpumanager] the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero",
  },
  {
    argv: ["--memory-manager-policy=Static", "--system-reserved=cpu=1,memory=2Gi"],
    want: 'the total amount "1Gi" of type "memory" is not equal to the value "2Gi" determined by Node Allocatable feature',
  },
]) {
  test(`${argv.join(" ")} keeps the agent from starting`, async (t) => {
    await assert.rejects(open(t, ...argv), { message: want });
  });
}

test("CPUs of --reserved-cpus are never given exclusively", async (t) => {
  const { managers, cpu } = await open(t, "--cpu-manager-policy=static", "--reserved-cpus=3");
  assert.deepEqual(cpu.allocatable(), [0, 1, 2]);
  const pod = guaranteed("u1", "3", "1Gi");
  assert.equal(await managers.admit(pod), undefined);
  assert.deepEqual(managers.placementOf(pod, main), { cpusetCpus: "0-2" });
});
