import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import type { NodePod } from "../../pod/pod.ts";
import { aContainer, aNodePod } from "../../testing/builders.ts";
import { aDevice } from "../../testing/device-plugin.ts";
import { DeviceManager } from "./device-manager.ts";
import type { PluginClient } from "./plugin-client.ts";
import { type DeviceAccess, type PluginDevice, pluginMessages } from "./plugin-schema.ts";

const gpu = "example.com/gpu";
const nic = "example.com/nic";
const anywhere = { preferred: false };
const podOf = (uid: string, limits: Record<string, string>, ...names: string[]): NodePod =>
  aNodePod(
    { containers: (names.length === 0 ? ["main"] : names).map((name) => aContainer({ name, resources: { limits } })) },
    { uid },
  );

/** In-memory plugins by socket path; allocations are persisted in a directory that the next manager reads. */
async function bench(t: TestContext) {
  const dir = await mkdtemp(join(tmpdir(), "cox-devices-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const clock = newFakeClock();
  interface Played {
    list: (devices: PluginDevice[]) => void;
    die: () => void;
    requested: string[];
    fails: number;
    access: Partial<DeviceAccess>;
    closed: number;
    /** When true, the stream of a closed connection ends with a delay. */
    lingers: boolean;
  }
  const plugins = new Map<string, Played>();
  const nobody: Omit<Played, "requested"> = {
    list: () => undefined,
    die: () => undefined,
    fails: 0,
    access: {},
    closed: 0,
    lingers: false,
  };
  const connect = (socket: string): PluginClient => {
    const gone = Promise.withResolvers<void>();
    const plugin = plugins.get(socket) ?? { ...nobody, requested: [] };
    plugins.set(socket, plugin);
    return {
      watch(onDevices) {
        Object.assign(plugin, { list: onDevices, die: gone.resolve });
        return gone.promise;
      },
      options: async () => ({ preStartRequired: false, getPreferredAllocationAvailable: false }),
      async allocate(ids) {
        plugin.requested.push(ids.join());
        if (plugin.fails-- > 0) throw new Error("not now");
        const access = { envs: {}, mounts: [], devices: [], annotations: {}, ...plugin.access };
        return { access, bytes: pluginMessages.encode("ContainerAllocateResponse", access) };
      },
      preferred: async () => [],
      preStart: () => assert.fail("the plugin does not require it"),
      close() {
        plugin.closed++;
        if (!plugin.lingers) gone.resolve();
      },
    };
  };
  const open = () => new DeviceManager({ dir, numaNodes: [0], clock, log: discardLogger, onChange: () => undefined, connect });
  const manager = open();
  const register = async (resource: string, socket: string, devices: PluginDevice[], to = manager) => {
    await to.handler.register(resource, socket, ["v1beta1"]);
    const plugin = plugins.get(socket) as NonNullable<ReturnType<typeof plugins.get>>;
    plugin.list(devices);
    return plugin;
  };
  const allocate = async (pod: NodePod, to = manager): Promise<string[]> => {
    for (const container of pod.spec.containers) await to.allocate(pod, container, anywhere);
    return to.givenTo(pod.metadata.uid, "main").map(({ resource, byNode }) => `${resource} ${[...byNode.values()].flat()}`);
  };
  return { manager, open, clock, register, allocate, dir };
}

test("an unhealthy device is not allocated but counted in the node's capacity until it is healthy again", async (t) => {
  const { manager, register, allocate } = await bench(t);
  const plugin = await register(gpu, "a", [{ ...aDevice("g1"), health: "Unhealthy" }, aDevice("g2")]);
  assert.deepEqual(await allocate(podOf("p1", { [gpu]: "1" })), [`${gpu} g2`]);
  assert.deepEqual(manager.amounts(), { capacity: { [gpu]: "2" }, allocatable: { [gpu]: "1" } });
  await assert.rejects(allocate(podOf("p2", { [gpu]: "1" })), /Requested: 1, Available: 0/);
  plugin.list([aDevice("g1"), aDevice("g2")]);
  assert.deepEqual(await allocate(podOf("p2", { [gpu]: "1" })), [`${gpu} g1`]);
});

test("a plugin that does not require it is not told of a container's start", async (t) => {
  const { manager, register, allocate } = await bench(t);
  await register(gpu, "a", [aDevice("g1")]);
  const pod = podOf("p1", { [gpu]: "1" });
  await allocate(pod);
  const [container] = pod.spec.containers;
  assert.deepEqual((await manager.accessOf(pod, container!)).devices, []);
});

test("a device held by one container or pod is not allocated to another before its release", async (t) => {
  const { manager, register, allocate } = await bench(t);
  await register(
    gpu,
    "a",
    ["g1", "g2", "g3"].map((id) => aDevice(id)),
  );
  const both = podOf("p1", { [gpu]: "1" }, "main", "second");
  await allocate(both);
  const third = podOf("p2", { [gpu]: "1" });
  assert.deepEqual(await allocate(third), [`${gpu} g3`]);
  await assert.rejects(allocate(podOf("p3", { [gpu]: "1" })), /Available: 0/);
  manager.release([third]);
  assert.deepEqual([manager.inUse(), manager.givenTo("p1", "second")], [{ [gpu]: "1" }, []]);
  assert.deepEqual(await allocate(podOf("p3", { [gpu]: "2" })), [`${gpu} g1,g2`]);
});

test("a device on two NUMA nodes is one device of its container, and one in use", async (t) => {
  const { manager, register, allocate } = await bench(t);
  await register(gpu, "a", [aDevice("g1", 0, 1), aDevice("g2", 1)]);
  const pod = podOf("p1", { [gpu]: "2" });
  await allocate(pod);
  assert.deepEqual(
    manager.givenTo("p1", "main")[0]?.byNode,
    new Map([
      [0, ["g1"]],
      [1, ["g1", "g2"]],
    ]),
  );
  assert.deepEqual(manager.inUse(), { [gpu]: "2" });
  await allocate(pod); // as many as before: not a changed request
});

test("a retry after a failure of the second resource does not allocate the first one again", async (t) => {
  const { manager, register, allocate } = await bench(t);
  const gpus = await register(gpu, "a", [aDevice("g1"), aDevice("g2")]);
  const nics = await register(nic, "b", [aDevice("n1")]);
  nics.fails = 1;
  const pod = podOf("p1", { [gpu]: "1", [nic]: "1" });
  await assert.rejects(allocate(pod), /not now/);
  assert.deepEqual(manager.inUse(), { [gpu]: "1", [nic]: "0" }, "what failed is released");
  assert.deepEqual(await allocate(pod), [`${gpu} g1`, `${nic} n1`]);
  assert.deepEqual([gpus.requested, nics.requested], [["g1"], ["n1", "n1"]]);
});

test("a restarted device manager restores allocations, and allocates nothing before the plugin registers again", async (t) => {
  const { open, register, allocate } = await bench(t);
  const devices = [aDevice("g1"), aDevice("g2")];
  await register(gpu, "a", devices);
  const pod = podOf("p1", { [gpu]: "1" });
  await allocate(pod);
  const next = open();
  assert.deepEqual([next.amounts(), next.inUse()], [{ capacity: { [gpu]: "0" }, allocatable: { [gpu]: "0" } }, { [gpu]: "1" }]);
  assert.deepEqual(await allocate(pod, next), [`${gpu} g1`], "what it has it keeps");
  await assert.rejects(allocate(podOf("p2", { [gpu]: "1" }), next), /Available: 0/);
  await register(gpu, "a", devices, next);
  assert.deepEqual(await allocate(podOf("p2", { [gpu]: "1" }), next), [`${gpu} g2`]);
  next.release([]);
  assert.deepEqual(open().inUse(), { [gpu]: "0" }, "what was given back is so on disk");
});

test("devices of a disconnected plugin count as unhealthy for five minutes, then not at all, until it is back", async (t) => {
  const { manager, clock, register } = await bench(t);
  const plugin = await register(gpu, "a", [aDevice("g1"), aDevice("g2")]);
  plugin.die();
  await settle();
  assert.deepEqual(manager.amounts(), { capacity: { [gpu]: "2" }, allocatable: { [gpu]: "0" } });
  await clock.advance(5 * 60_000 - 1);
  assert.deepEqual(manager.amounts().capacity, { [gpu]: "2" });
  await clock.advance(1);
  assert.deepEqual(manager.amounts().capacity, { [gpu]: "0" });
  await manager.handler.register(gpu, "a", ["v1beta1"]);
  assert.deepEqual(manager.amounts().capacity, { [gpu]: "0" }, "it has not listed its devices yet");
  await register(gpu, "a", [aDevice("g1")]);
  await clock.advance(10 * 60_000);
  assert.deepEqual(manager.amounts(), { capacity: { [gpu]: "1" }, allocatable: { [gpu]: "1" } });
});

test("a plugin that is deregistered is disconnected, and one that is not known is no error", async (t) => {
  const { manager, register } = await bench(t);
  await register(gpu, "a", [aDevice("g1")]);
  await register(nic, "b", [aDevice("n1")]);
  await manager.handler.deregister("example.com/other");
  await manager.handler.deregister(gpu);
  await settle();
  assert.deepEqual(manager.amounts().allocatable, { [gpu]: "0", [nic]: "1" });
});

test("only the disconnected one of two plugins loses its devices, also after a restart of the agent", async (t) => {
  const { manager, clock, open, register } = await bench(t);
  await register(gpu, "a", [aDevice("g1")]);
  const away = await register(nic, "b", [aDevice("n1")]);
  away.die();
  await settle();
  await clock.advance(5 * 60_000);
  const want = { [gpu]: "1", [nic]: "0" };
  assert.deepEqual(manager.amounts(), { capacity: want, allocatable: want });
  assert.equal(manager.inUse()[nic], undefined);
  assert.deepEqual(Object.keys(open().inUse()), [gpu]);
});

test("a resource that no pod has used is still reported, as 0, by an agent that starts anew", async (t) => {
  const { open, register } = await bench(t);
  await register(gpu, "a", [aDevice("g1")]);
  assert.deepEqual(open().amounts(), { capacity: { [gpu]: "0" }, allocatable: { [gpu]: "0" } });
});

test("a resource whose plugin does not return within five minutes of the agent's restart is given up, and no device of it is in use", async (t) => {
  const { open, clock, register, allocate } = await bench(t);
  await register(gpu, "a", [aDevice("g1")]);
  const nics = await register(nic, "b", [aDevice("n1")]);
  await allocate(podOf("p1", { [gpu]: "1" }));
  await clock.advance(10 * 60_000);
  const next = open();
  await register(nic, "b", [aDevice("n1")], next);
  await clock.advance(5 * 60_000 - 1);
  assert.deepEqual(
    [next.amounts().capacity, next.inUse()],
    [
      { [gpu]: "0", [nic]: "1" },
      { [gpu]: "1", [nic]: "0" },
    ],
  );
  await clock.advance(1);
  assert.deepEqual([next.amounts().capacity, next.inUse()], [{ [gpu]: "0", [nic]: "1" }, { [nic]: "0" }]);
  await assert.rejects(allocate(podOf("p2", { [gpu]: "1" }), next), /can't allocate unregistered device/);
  assert.deepEqual(nics.requested, []);
});

test("the connection that read a plugin's options is closed, that of its devices stays", async (t) => {
  const { register } = await bench(t);
  assert.equal((await register(gpu, "a", [aDevice("g1")])).closed, 1);
});

test("lists and the disconnect of a replaced plugin are ignored", async (t) => {
  const { manager, register, allocate } = await bench(t);
  const old = await register(gpu, "a", [aDevice("g1")]);
  const { list, die, closed } = old;
  old.lingers = true;
  const present = await register(gpu, "b", [aDevice("g7")]);
  assert.equal(old.closed, closed + 1, "its connection is given up");
  list([aDevice("g1"), aDevice("g2")]);
  die();
  await settle();
  assert.deepEqual(manager.amounts(), { capacity: { [gpu]: "1" }, allocatable: { [gpu]: "1" } });
  assert.deepEqual(await allocate(podOf("p1", { [gpu]: "1" })), [`${gpu} g7`]);
  assert.deepEqual([old.requested, present.requested], [[], ["g7"]]);
});

test("a resource without a plugin does not hide the topology of others", async (t) => {
  const { manager, register } = await bench(t);
  await register(gpu, "a", [aDevice("g1", 0)]);
  const pod = podOf("p1", { "other.example/x": "1", [nic]: "0", [gpu]: "1" });
  assert.deepEqual([...manager.podHints(pod).keys()], [gpu]);
  assert.equal(manager.concerns(podOf("p2", { "other.example/x": "1" })), false);
  assert.equal(manager.concerns(pod), true);
});

test("a checkpoint that cannot be written fails an allocation, but neither the stream of devices nor the node's capacity", async (t) => {
  const { manager, clock, register, allocate, dir } = await bench(t);
  const plugin = await register(gpu, "a", [aDevice("g1")]);
  await rm(dir, { recursive: true });
  plugin.list([aDevice("g1"), aDevice("g2")]);
  assert.equal(manager.amounts().allocatable[gpu], "2");
  await assert.rejects(allocate(podOf("p1", { [gpu]: "1" })), /ENOENT/);
  plugin.die();
  await settle();
  await clock.advance(10 * 60_000);
  assert.equal(manager.amounts().allocatable[gpu], "0");
});

test("where two plugins set the same name of a container the first wins; other settings of both apply", async (t) => {
  const { manager, register, allocate } = await bench(t);
  const gives = (by: string) => ({
    envs: { SHARED: by, [by]: "1" },
    annotations: { shared: by, [by]: "1" },
    mounts: ["/shared", `/${by}`].map((containerPath) => ({ hostPath: `/of-${by}`, containerPath, readOnly: true })),
    devices: ["/dev/shared", `/dev/${by}`].map((containerPath) => ({ hostPath: `/of-${by}`, containerPath, permissions: "rw" })),
  });
  (await register(gpu, "a", [aDevice("g1")])).access = gives("gpu");
  (await register(nic, "b", [aDevice("n1")])).access = gives("nic");
  const pod = podOf("p1", { [gpu]: "1", [nic]: "1" });
  await allocate(pod);
  const access = await manager.accessOf(pod, pod.spec.containers[0] as never);
  assert.deepEqual(
    [access.envs, access.annotations],
    [
      { SHARED: "gpu", gpu: "1", nic: "1" },
      { shared: "gpu", gpu: "1", nic: "1" },
    ],
  );
  const from = (things: readonly { hostPath: string; containerPath: string }[]) =>
    things.map(({ hostPath, containerPath }) => `${containerPath} ${hostPath}`);
  assert.deepEqual(from(access.mounts), ["/shared /of-gpu", "/gpu /of-gpu", "/nic /of-nic"]);
  assert.deepEqual(from(access.devices), ["/dev/shared /of-gpu", "/dev/gpu /of-gpu", "/dev/nic /of-nic"]);
});

test("a pod's containers reuse the devices of its own init containers", async (t) => {
  const { manager, register, allocate } = await bench(t);
  await register(gpu, "a", [aDevice("g1"), aDevice("g2")]);
  for (const uid of ["u1", "u2"]) {
    const init = aContainer({ name: "init", resources: { limits: { [gpu]: "2" } } });
    const own = podOf(uid, { [gpu]: "1" }, "main", "second");
    const pod = { ...own, spec: { ...own.spec, initContainers: [init] } };
    await manager.allocate(pod, init, anywhere);
    await allocate(pod);
    const given = ["main", "second"].map((name) =>
      manager.givenTo(uid, name).flatMap(({ byNode }) => [...byNode.values()].flat()),
    );
    assert.deepEqual(given.flat().toSorted(), ["g1", "g2"]);
    manager.release([]);
  }
});

test("devices that only a pod's init container uses are not allocated to the next pod", async (t) => {
  const { manager, register, allocate } = await bench(t);
  await register(
    gpu,
    "a",
    ["g1", "g2", "g3"].map((id) => aDevice(id)),
  );
  const init = aContainer({ name: "init", resources: { limits: { [gpu]: "2" } } });
  const own = podOf("u1", { [gpu]: "1" });
  const pod = { ...own, spec: { ...own.spec, initContainers: [init] } };
  await manager.allocate(pod, init, anywhere);
  await allocate(pod);
  assert.deepEqual(await allocate(podOf("u2", { [gpu]: "1" })), [`${gpu} g3`]);
});

test("a container that requests fewer devices than it was allocated is refused", async (t) => {
  const { manager, register, allocate } = await bench(t);
  await register(gpu, "a", [aDevice("g1", 0), aDevice("g2", 0)]);
  await allocate(podOf("u1", { [gpu]: "2" }));
  const fewer = podOf("u1", { [gpu]: "1" });
  const [container] = fewer.spec.containers as [NodePod["spec"]["containers"][number]];
  assert.deepEqual([manager.hints(fewer, container).get(gpu), manager.podHints(fewer).get(gpu)], [[], []]);
  await assert.rejects(allocate(podOf("u1", { [gpu]: "1" })), /changed request for resource "example.com\/gpu" from 2 to 1/);
});

test("a plugin of the registry needs a version in common, and the name of an extended resource", async (t) => {
  const { manager } = await bench(t);
  const validate = (resource: string, ...versions: string[]) => manager.handler.validate(resource, "/a.sock", versions);
  assert.equal(validate(gpu, "v1alpha1", "v1beta1"), undefined);
  const message = "manager version, [v1beta1], is not among plugin supported versions";
  assert.throws(() => validate(gpu, "v1", "v2"), { message: `${message} [v1 v2]` });
  assert.throws(() => validate(gpu), { message: `${message} []` });
  assert.throws(() => validate("cpu", "v1beta1"), { message: "invalid name of device plugin socket: cpu" });
});

test("resources of others and requests of zero are not allocated, nor prepared", async (t) => {
  const { manager, register } = await bench(t);
  const plugin = await register(gpu, "a", [aDevice("g1")]);
  const pod = podOf("p1", { "example.com/unknown": "1", [gpu]: "0", [nic]: "2" });
  const [container] = pod.spec.containers as [(typeof pod.spec.containers)[0]];
  await manager.allocate(pod, container, anywhere);
  assert.deepEqual(plugin.requested, []);
  assert.deepEqual(await manager.accessOf(pod, container), { envs: {}, mounts: [], devices: [], annotations: {} });
  assert.deepEqual([manager.hints(pod, container).size, manager.podHints(pod).size], [0, 0]);
  assert.equal(manager.concerns(pod), true);
});
