/** Tens of thousands of devices of one plugin: no event-loop turn exceeds 100 ms, with threefold slack. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { nextIteration } from "@coxswain/apimachinery/process/event-loop/iterations";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { cpuMsOf, leastOf, longestTurnOf } from "@coxswain/apimachinery/testing/cpu-time";
import { aContainer, aNodePod } from "../../testing/builders.ts";
import { aDevice } from "../../testing/device-plugin.ts";
import { chooseDevices, deviceHints } from "./choose-devices.ts";
import { DeviceManager } from "./device-manager.ts";
import { type PluginDevice, pluginMessages } from "./plugin-schema.ts";

const longestTurnMs = 300;
const gpu = "example.com/gpu";
const numaNodes = [0, 1, 2, 3, 4, 5, 6, 7];
const ids = Array.from({ length: 40_000 }, (_, at) => `device-${at}`);
const devices = ids.map((id, at) => aDevice(id, at % numaNodes.length));
const byId: ReadonlyMap<string, PluginDevice> = new Map(devices.map((one) => [one.ID, one]));

for (const { name, hint } of [
  { name: "more than are near", hint: [0, 1] },
  { name: "fewer than are near", hint: [0, 1, 2, 3, 4, 5, 6] },
]) {
  test(`30,000 of 40,000 devices, ${name}, are chosen without a long turn`, async (t) => {
    const longest = await longestTurnOf(longestTurnMs, async () => {
      const chosen = await chooseDevices({
        ...{ resource: gpu, count: 30_000, devices: byId, reusable: ids.slice(0, 10_000), available: ids },
        hint: { nodes: hint, preferred: true },
        prefer: async (available) => available.toReversed(),
      });
      assert.equal(new Set(chosen).size, 30_000);
    });
    t.diagnostic(`${longest} ms`);
    assert.ok(longest < longestTurnMs, `${longest} ms`);
  });
}

test("hints of 40,000 devices on eight NUMA nodes are made without a long turn", async (t) => {
  const counted = { available: ids, reusable: ids.filter((_, at) => at % 8 === 0) };
  const least = await leastOf(longestTurnMs, async () =>
    cpuMsOf(() => assert.equal(deviceHints(numaNodes, byId, counted, 10_000).filter(({ preferred }) => preferred).length, 7)),
  );
  t.diagnostic(`${least} ms`);
  assert.ok(least < longestTurnMs, `${least} ms`);
});

test("40,000 devices are listed, allocated, mounted and released, each without a long turn", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "cox-devices-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const gone = Promise.withResolvers<void>();
  t.after(() => gone.resolve());
  let list: (devices: PluginDevice[]) => void = () => undefined;
  const connect = () => ({
    watch(onDevices: typeof list) {
      list = onDevices;
      return gone.promise;
    },
    options: async () => ({ preStartRequired: false, getPreferredAllocationAvailable: false }),
    async allocate(given: readonly string[]) {
      await nextIteration();
      const paths = given.map((id) => ({ containerPath: `/dev/${id}`, hostPath: `/dev/${id}`, permissions: "rw" }));
      const access = { envs: {}, mounts: [], devices: paths, annotations: {} };
      return { access, bytes: pluginMessages.encode("ContainerAllocateResponse", access) };
    },
    preferred: async () => [],
    preStart: async () => undefined,
    close: () => undefined,
  });
  const base = {
    dir,
    numaNodes,
    clock: newFakeClock(),
    turns: new Turns(),
    log: discardLogger,
    onChange: () => undefined,
    connect,
  };
  const manager = new DeviceManager(base);
  await manager.handler.register(gpu, "a", ["v1beta1"]);
  const container = aContainer({ resources: { limits: { [gpu]: "30000" } } });
  const pod = aNodePod({ containers: [container] }, { uid: "u" });
  const turns: Record<string, () => Promise<void>> = {
    listed: async () => list(devices),
    hinted: async () => void manager.hints(pod, container),
    allocated: async () => {
      manager.release([]);
      await manager.allocate(pod, container, { preferred: false });
    },
    mounted: async () => assert.equal((await manager.accessOf(pod, container)).devices.length, 30_000),
    hintedAgain: async () => void manager.hints(pod, container),
    counted: async () =>
      assert.deepEqual([manager.inUse(), manager.amounts().capacity], [{ [gpu]: "30000" }, { [gpu]: "40000" }]),
    restored: async () => assert.equal(new DeviceManager(base).givenTo("u", "main").length, 1),
    released: async () => manager.release([]),
  };
  for (const [what, work] of Object.entries(turns)) {
    const longest = await longestTurnOf(longestTurnMs, work);
    t.diagnostic(`${what} ${longest} ms`);
    assert.ok(longest < longestTurnMs, `${what} ${longest} ms`);
  }
});
