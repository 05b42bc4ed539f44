import assert from "node:assert/strict";
import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Container } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { type FakeClock, newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { NodePod } from "../../pod/pod.ts";
import { aContainer, aNodePod } from "../../testing/builders.ts";
import { aDevice, startPlugin, type TestPlugin } from "../../testing/device-plugin.ts";
import { chooseDevices, deviceHints } from "./choose-devices.ts";
import { deviceCheckpointForm } from "./device-checkpoint.ts";
import { DeviceManager } from "./device-manager.ts";
import { newPluginClient } from "./plugin-client.ts";
import type { PluginDevice } from "./plugin-schema.ts";

const byId = (...devices: PluginDevice[]): ReadonlyMap<string, PluginDevice> => new Map(devices.map((one) => [one.ID, one]));
const placed = byId(aDevice("a0", 0), aDevice("b0", 0), aDevice("c1", 1), aDevice("d1", 1), aDevice("e"));
const anywhere = { preferred: false };

for (const { name, count, hint = anywhere, available = "a0 b0 c1 d1 e", reusable = "", prefers = "", want } of [
  { name: "those of init containers first", count: 2, reusable: "c1 x", want: "c1 x" },
  { name: "the first of those of init containers, by name", count: 1, reusable: "x c1", want: "c1" },
  { name: "none that the plugin names without having it", count: 2, prefers: "z c1", want: "c1 a0" },
  { name: "those that the plugin prefers, each once", count: 2, prefers: "e e d1", want: "e d1" },
  {
    name: "those of the hint's NUMA nodes, in the plugin's preference",
    count: 1,
    hint: { nodes: [1], preferred: true },
    prefers: "a0 d1",
    want: "d1",
  },
  {
    name: "all of the hint's NUMA nodes, then by the plugin's preference",
    count: 3,
    hint: { nodes: [1], preferred: false },
    prefers: "e",
    want: "c1 d1 e",
  },
  {
    name: "those of other NUMA nodes before those without one",
    count: 4,
    hint: { nodes: [1], preferred: false },
    want: "c1 d1 a0 b0",
  },
  {
    name: "at most those that exist",
    count: 3,
    available: "a0 e",
    want: "requested number of devices unavailable for r. Requested: 3, Available: 2",
  },
]) {
  test(`devices are chosen: ${name}`, async () => {
    const list = (text: string): string[] => text.split(" ").filter((id) => id !== "");
    const chosen = chooseDevices({
      resource: "r",
      count,
      devices: placed,
      reusable: list(reusable),
      available: list(available),
      hint,
      prefer: async () => list(prefers),
    });
    assert.equal(
      await chosen.then(
        (ids) => ids.join(" "),
        (err: Error) => err.message,
      ),
      want,
    );
  });
}

test("the plugin is asked which of all devices it prefers, and told which are chosen already; not when none is left to choose", async () => {
  const asked: unknown[] = [];
  const choose = (count: number, reusable: string[], node: number) =>
    chooseDevices({
      resource: "r",
      count,
      devices: placed,
      reusable,
      available: ["e", "d1", "c1", "b0", "a0"],
      hint: { nodes: [node], preferred: false },
      prefer: async (...question) => {
        asked.push(question);
        return [];
      },
    });
  await choose(2, [], 1);
  assert.deepEqual(asked, [], "there are two on the node");
  await choose(4, ["b0"], 0);
  assert.deepEqual(asked, [[["a0", "b0", "c1", "d1", "e"], ["b0", "a0"], 4]]);
});

test("hints of devices are the nodes that have enough of them", () => {
  const shown = (available: string[], reusable: string[], count: number): string[] =>
    deviceHints([0, 1], placed, { available, reusable }, count).map(({ nodes, preferred }) => `${nodes} ${preferred}`);
  assert.deepEqual(shown(["a0", "c1", "d1"], [], 1), ["0 true", "1 true", "0,1 false"]);
  assert.deepEqual(shown(["a0", "c1"], [], 2), ["0,1 false"], "one node has two, but not now");
  assert.deepEqual(shown(["a0", "c1", "d1"], [], 3), ["0,1 true"]);
  assert.deepEqual(shown(["a0", "d1"], ["c1"], 2), ["1 true", "0,1 false"]);
  assert.deepEqual(shown(["b0", "d1"], ["a0", "c1"], 2), ["0,1 false"], "all that can be reused are");
});

const gpu = "example.com/gpu";
const asking = (count: number, name = "main"): Container =>
  aContainer({ name, resources: { limits: { [gpu]: String(count) }, requests: { [gpu]: String(count) } } });
const podOf = (uid: string, ...containers: Container[]): NodePod => aNodePod({ containers }, { uid });

interface Setup {
  manager: DeviceManager;
  dir: string;
  clock: FakeClock;
  changes: () => number;
  plugin(devices: readonly PluginDevice[], options?: { preStart?: boolean }): Promise<TestPlugin>;
  /** A new agent on the same directory, after this one has ended. */
  again(): Promise<DeviceManager>;
}

async function setUp(t: TestContext): Promise<Setup> {
  const dir = join(await mkdtemp(join(tmpdir(), "cox-dev-")), "device-plugins");
  t.after(() => rm(join(dir, ".."), { recursive: true, force: true }));
  const clock = newFakeClock();
  let changes = 0;
  let stop = new AbortController();
  t.after(() => stop.abort());
  const start = async (): Promise<DeviceManager> => {
    stop.abort();
    stop = new AbortController();
    const onChange = (): void => void changes++;
    const manager = new DeviceManager({ dir, numaNodes: [0, 1], clock, log: discardLogger, onChange });
    await manager.start(stop.signal);
    return manager;
  };
  const manager = await start();
  return {
    manager,
    dir,
    clock,
    changes: () => changes,
    again: start,
    async plugin(devices, options = {}) {
      const access = (ids: readonly string[]) => ({
        envs: { GPUS: ids.join() },
        devices: ids.map((id) => ({ hostPath: `/dev/${id}`, containerPath: `/dev/gpu-${id}`, permissions: "rw" })),
        mounts: [{ hostPath: "/lib/gpu", containerPath: "/usr/lib/gpu", readOnly: true }],
        annotations: { gpus: ids.join() },
      });
      const plugin = await startPlugin(dir, gpu, { devices, access, ...options });
      t.after(() => plugin.stop());
      return plugin;
    },
  };
}

test("a node's capacity counts a plugin's devices, its allocatable those that are healthy", async (t) => {
  const { manager, clock, changes, plugin } = await setUp(t);
  const own = await plugin([aDevice("a"), aDevice("b"), { ...aDevice("c"), health: "Unhealthy" }]);
  assert.deepEqual(manager.amounts(), { capacity: {}, allocatable: {} });
  await own.register();
  await waitFor(() => changes() === 1, { what: "the devices" });
  assert.deepEqual(manager.amounts(), { capacity: { [gpu]: "3" }, allocatable: { [gpu]: "2" } });
  own.setDevices([aDevice("a")]);
  await waitFor(() => changes() === 2, { what: "other devices" });
  assert.deepEqual(manager.amounts(), { capacity: { [gpu]: "1" }, allocatable: { [gpu]: "1" } });
  own.stop();
  await waitFor(() => changes() === 3, { what: "the plugin's end to be seen" });
  clock.setOn(3_600_000);
  assert.deepEqual(manager.amounts(), { capacity: { [gpu]: "1" }, allocatable: { [gpu]: "0" } });
  await clock.advance(5 * 60_000);
  assert.deepEqual(manager.amounts(), { capacity: { [gpu]: "0" }, allocatable: { [gpu]: "0" } }, "it did not come back");
});

test("a container gets exclusive devices with their settings, and keeps them across a restart of the agent", async (t) => {
  const { manager, dir, changes, plugin, again } = await setUp(t);
  const own = await plugin([aDevice("a"), aDevice("b"), aDevice("c")], { preStart: true });
  own.prefers = (available) => available.filter((id) => id === "b");
  await own.register();
  await waitFor(() => changes() === 1, { what: "the devices" });
  const pod = podOf("u1", asking(1));
  const [container] = pod.spec.containers as [Container];
  assert.deepEqual([manager.concerns(pod), manager.concerns(aNodePod())], [true, false]);
  await manager.allocate(pod, container, anywhere);
  assert.deepEqual(own.calls.splice(0), ["GetPreferredAllocation a,b,c", "Allocate b"]);
  const want = {
    envs: { GPUS: "b" },
    devices: [{ hostPath: "/dev/b", containerPath: "/dev/gpu-b", permissions: "rw" }],
    mounts: [{ hostPath: "/lib/gpu", containerPath: "/usr/lib/gpu", readOnly: true }],
    annotations: { gpus: "b" },
  };
  assert.deepEqual(await manager.accessOf(pod, container), want);
  assert.deepEqual(own.calls.splice(0), ["PreStartContainer b"]);
  await manager.allocate(pod, container, anywhere);
  assert.deepEqual(own.calls, [], "it has them");
  await assert.rejects(manager.allocate(podOf("u2", asking(3)), asking(3), anywhere), {
    message: `requested number of devices unavailable for ${gpu}. Requested: 3, Available: 2`,
  });
  await assert.rejects(manager.allocate(pod, asking(2), anywhere), {
    message: `pod "u1" container "main" changed request for resource "${gpu}" from 1 to 2`,
  });

  const socket = join(dir, "example.com_gpu.sock");
  await again(); // starts twice before anything changes
  const next = await again();
  await assert.rejects(stat(socket), "the plugin's socket is gone: so it hears of the restart");
  assert.deepEqual(next.amounts(), { capacity: { [gpu]: "0" }, allocatable: { [gpu]: "0" } });
  assert.deepEqual(next.inUse(), { [gpu]: "1" });
  await next.allocate(pod, container, anywhere);
  assert.deepEqual(await next.accessOf(pod, container), want);
  await assert.rejects(next.allocate(podOf("u2", asking(1)), asking(1), anywhere), {
    message: `requested number of devices unavailable for ${gpu}. Requested: 1, Available: 0`,
  });
  next.release([]);
  assert.deepEqual([next.inUse(), next.givenTo("u1", "main")], [{ [gpu]: "0" }, []]);
});

test("a plugin is told which devices are chosen already, and how many are wanted", async (t) => {
  const { dir, plugin } = await setUp(t);
  const own = await plugin([]);
  own.prefers = (available) => available.slice(1);
  const client = newPluginClient(join(dir, "example.com_gpu.sock"));
  t.after(() => client.close());
  assert.deepEqual(await client.preferred(["a", "b", "c"], ["a"], 2), ["b", "c"]);
  assert.deepEqual(own.calls, ["GetPreferredAllocation a,b,c with a, 2 in all"]);
  assert.deepEqual(await client.options(), { preStartRequired: false, getPreferredAllocationAvailable: true });
  const careful = await startPlugin(dir, "example.com/nic", { devices: [], preStart: true });
  t.after(() => careful.stop());
  const other = newPluginClient(join(dir, "example.com_nic.sock"));
  t.after(() => other.close());
  assert.deepEqual(await other.options(), { preStartRequired: true, getPreferredAllocationAvailable: true });
});

test("devices of init containers are reused by later containers", async (t) => {
  const { manager, changes, plugin } = await setUp(t);
  const own = await plugin([aDevice("a"), aDevice("b")]);
  await own.register();
  await waitFor(() => changes() === 1, { what: "the devices" });
  const pod = aNodePod({ initContainers: [asking(2, "init")], containers: [asking(1, "x"), asking(1, "y")] }, { uid: "u1" });
  for (const container of [...(pod.spec.initContainers ?? []), ...pod.spec.containers])
    await manager.allocate(pod, container, anywhere);
  assert.deepEqual(
    own.calls.filter((call) => call.startsWith("Allocate")),
    ["Allocate a,b", "Allocate a", "Allocate b"],
  );
});

test("hints name the NUMA nodes of devices; devices without a NUMA node give no hints", async (t) => {
  const { manager, changes, plugin } = await setUp(t);
  const own = await plugin([aDevice("a", 0), aDevice("b", 1), aDevice("c", 1)]);
  await own.register();
  await waitFor(() => changes() === 1, { what: "the devices" });
  const shown = (pod: NodePod): string[] =>
    (manager.podHints(pod).get(gpu) ?? []).map(({ nodes, preferred }) => `${nodes} ${preferred}`);
  const pod = podOf("u1", asking(1, "x"), asking(1, "y"));
  assert.deepEqual(shown(pod), ["1 true", "0,1 false"]);
  await manager.allocate(pod, pod.spec.containers[0] as Container, { nodes: [1], preferred: true });
  assert.deepEqual([...(manager.givenTo("u1", "x")[0]?.byNode ?? [])], [[1, ["b"]]]);
  assert.deepEqual(manager.hints(podOf("u1", asking(2, "x")), asking(2, "x")).get(gpu), [], "it asks for other than it has");
  own.setDevices([aDevice("a"), aDevice("b"), aDevice("c")]);
  await waitFor(() => changes() === 2, { what: "other devices" });
  assert.deepEqual([...manager.hints(podOf("u2", asking(1)), asking(1))], [[gpu, undefined]]);
});

for (const { overrides, want } of [
  {
    overrides: { version: "v1alpha" },
    want: 'requested API version "v1alpha" is not supported by kubelet. Supported version is ["v1beta1"]',
  },
  { overrides: { resourceName: "cpu" }, want: 'the ResourceName "cpu" is invalid' },
  { overrides: { endpoint: "" }, want: 'the endpoint "" is invalid' },
  { overrides: { endpoint: ".." }, want: 'the endpoint ".." is invalid' },
  { overrides: { endpoint: "../../other.sock" }, want: 'the endpoint "../../other.sock" is invalid' },
]) {
  test(`a plugin that registers with ${JSON.stringify(overrides)} is refused`, async (t) => {
    const { plugin } = await setUp(t);
    await assert.rejects((await plugin([])).register(overrides), { message: want });
  });
}

test("a failed Allocate leaves the container without devices, and the next attempt succeeds", async (t) => {
  const { manager, changes, plugin } = await setUp(t);
  const own = await plugin([aDevice("a")]);
  await own.register();
  await waitFor(() => changes() === 1, { what: "the devices" });
  own.prefers = (available) => {
    own.failNext = "no power";
    return available;
  };
  const pod = podOf("u1", asking(1));
  await assert.rejects(manager.allocate(pod, asking(1), anywhere), { message: "rpc error: code = Unknown desc = no power" });
  assert.deepEqual(manager.givenTo("u1", "main"), []);
  own.prefers = () => [];
  await manager.allocate(pod, asking(1), anywhere);
  assert.equal(manager.givenTo("u1", "main").length, 1);
});

test("a checkpoint with a wrong checksum is ignored", async (t) => {
  const { dir, again } = await setUp(t);
  await writeFile(
    join(dir, "kubelet_internal_checkpoint"),
    '{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{"example.com/x":[]}},"Checksum":1}',
  );
  assert.deepEqual((await again()).amounts(), { capacity: {}, allocatable: {} });
});

test("a checkpoint of upstream's kubelet without allocations is read", () => {
  const id = "GPU-0650a168-e770-3ea8-8ac3-8a1d419763e0";
  const written = { Data: { PodDeviceEntries: null, RegisteredDevices: { "nvidia.com/gpu": [id] } }, Checksum: 3_952_659_280 };
  const state = { given: [], registered: new Map([["nvidia.com/gpu", [id]]]) };
  assert.deepEqual(deviceCheckpointForm.decode(JSON.stringify(written)), state);
  assert.deepEqual(JSON.parse(deviceCheckpointForm.encode(state)), written);
});

test("the checkpoint has upstream's file format", async () => {
  const state = {
    given: [{ podUid: "u", container: "c", resource: gpu, byNode: new Map([[-1, ["a", "b"]]]), answer: Buffer.from([10, 2]) }],
    registered: new Map([[gpu, ["a", "b"]]]),
  };
  const text = deviceCheckpointForm.encode(state);
  assert.match(
    text,
    /^\{"Data":\{"PodDeviceEntries":\[\{"PodUID":"u","ContainerName":"c","ResourceName":"example.com\/gpu","DeviceIDs":\{"-1":\["a","b"\]\},"AllocResp":"CgI="\}\],"RegisteredDevices":\{"example.com\/gpu":\["a","b"\]\}\},"Checksum":\d+\}$/,
  );
  assert.deepEqual(deviceCheckpointForm.decode(text), state);
  assert.throws(() => deviceCheckpointForm.decode(text.replace('"c"', '"d"')), { message: "checkpoint is corrupted" });
});

test("a plugin that does not prepare its device keeps the container from starting, with its reason", async (t) => {
  const { manager, changes, plugin } = await setUp(t);
  const own = await plugin([aDevice("a")], { preStart: true });
  await own.register();
  await waitFor(() => changes() === 1, { what: "the devices" });
  const pod = podOf("u1", asking(1));
  await manager.allocate(pod, asking(1), anywhere);
  own.failNext = "too hot";
  await assert.rejects(manager.accessOf(pod, asking(1)), {
    message: "device plugin PreStartContainer rpc failed with err: rpc error: code = Unknown desc = too hot",
  });
  assert.deepEqual((await manager.accessOf(pod, asking(1))).envs, { GPUS: "a" });
});

test("healthy devices are listed by resource, without those that are not", async (t) => {
  const { manager, changes, plugin } = await setUp(t);
  const own = await plugin([aDevice("a", 1), { ...aDevice("b"), health: "Unhealthy" }, aDevice("c")]);
  await own.register();
  await waitFor(() => changes() === 1, { what: "the devices" });
  assert.deepEqual(
    [...manager.healthy()].map(([resource, devices]) => [resource, devices.map(({ ID }) => ID)]),
    [[gpu, ["a", "c"]]],
  );
});

test("an agent that ends before it has started serves no plugins", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "cox-dev-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const options = { dir, numaNodes: [0], clock: newFakeClock(), log: discardLogger, onChange: () => undefined };
  await new DeviceManager(options).start(AbortSignal.abort());
  await assert.rejects(stat(join(dir, "kubelet.sock")), { code: "ENOENT" });
});
