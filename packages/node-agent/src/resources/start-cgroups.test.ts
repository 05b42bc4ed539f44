import assert from "node:assert/strict";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { aContainer, aNodePod } from "../testing/builders.ts";
import type { Cgroups } from "./cgroups.ts";
import { startCgroups } from "./start-cgroups.ts";

/**
 * Starts the cgroups in a folder with one reserved cgroup, `/system`.
 * @param gates the feature gates that are on
 * @param version of the hierarchy
 * @returns the cgroups, the events of the node and the error
 */
async function start(
  t: TestContext,
  enforceNodeAllocatable: string[],
  cgroups: object = {},
  { gates = [], version = 1, obstacle }: { gates?: string[]; version?: 1 | 2; obstacle?: string } = {},
) {
  const mountPoint = await mkdtemp(join(tmpdir(), "cox-start-cgroups-"));
  t.after(() => rm(mountPoint, { recursive: true, force: true }));
  if (version === 2) {
    for (const path of ["", "kubepods", "kubepods/burstable", "kubepods/besteffort"]) {
      await mkdir(join(mountPoint, path), { recursive: true });
      await writeFile(join(mountPoint, path, "cgroup.controllers"), "");
    }
  }
  for (const controller of version === 1 ? ["cpu", "memory", "pids"] : []) {
    await mkdir(join(mountPoint, controller, "system"), { recursive: true });
    await writeFile(join(mountPoint, controller, "cgroup.procs"), "");
  }
  if (obstacle !== undefined) await writeFile(join(mountPoint, obstacle), "a file in place of a folder");
  const reserved = { systemReservedCgroup: "/system", kubeReservedCgroup: "/kube" };
  const events: string[] = [];
  let started: Cgroups | undefined;
  const failure = await startCgroups({
    config: {
      cgroupRoot: "/",
      cgroupDriver: "cgroupfs",
      cgroupsPerQos: true,
      ...reserved,
      enforceNodeAllocatable,
      ...cgroups,
    } as never,
    featureGates: { enabled: (gate: string) => gates.includes(gate) } as never,
    machine: { maxPids: 1000 } as never,
    capacity: { cpu: "2", memory: "1Gi" },
    reservations: {
      kube: { cpu: "100m" },
      system: { cpu: "500m", memory: "256Mi" },
      evictionHard: { "memory.available": "100Mi" },
    },
    notify: { node: (...event: string[]) => void events.push(event.join(" ")) } as never,
    clock: newFakeClock(),
    signal: new AbortController().signal,
    log: discardLogger,
    mountPoint,
  }).then(
    (made) => {
      started = made;
    },
    (err: Error) => err.message,
  );
  const limit = (file: string) => readFile(join(mountPoint, file), "utf8").catch(() => undefined);
  return { cgroups: started, events, failure, limit };
}

test("limits of pods and of a reserved cgroup that are set are events of the node", async (t) => {
  const { events, failure } = await start(t, ["pods", "system-reserved"]);
  assert.equal(failure, undefined);
  assert.deepEqual(events, [
    "Normal NodeAllocatableEnforced Updated Node Allocatable limit across pods",
    "Normal NodeAllocatableEnforced Updated limits on system reserved cgroup /system",
  ]);
});

test("a reserved cgroup that does not exist is an event of the node, and ends the program with the same message", async (t) => {
  const { events, failure } = await start(t, ["kube-reserved"]);
  assert.equal(failure, 'Failed to enforce Kube Reserved Cgroup Limits on "/kube": ["kube"] cgroup does not exist');
  assert.equal(events.at(-1), `Warning FailedNodeAllocatableEnforcement ${failure}`);
});

test("without cgroups per QoS class there is no event about the limit of pods", async (t) => {
  const { events, failure } = await start(t, [], { cgroupsPerQos: false });
  assert.deepEqual([events, failure], [[], undefined]);
});

test("pods are limited to what is not reserved, eviction thresholds included", async (t) => {
  const { limit } = await start(t, ["pods"]);
  assert.deepEqual(
    [await limit("memory/kubepods/memory.limit_in_bytes"), await limit("pids/kubepods/pids.max")],
    [String(768 * 1024 ** 2), "1000"],
  );
  assert.equal(await limit("cpu/kubepods/cpu.shares"), String(Math.floor((1400 * 1024) / 1000)));
});

test("a pod's CPU quota is for the configured period, and its processes are limited as configured", async (t) => {
  const settings = { cpuCfsQuota: true, cpuCfsPeriodMs: 50, podPidsLimit: 77 };
  const { cgroups, limit } = await start(t, ["pods"], settings);
  const limits = { cpu: "2", memory: "1Mi" };
  await cgroups?.ensure(aNodePod({ containers: [aContainer({ resources: { limits, requests: limits } })] }));
  const files = ["cpu.cfs_period_us", "cpu.cfs_quota_us"].map((file) => limit(`cpu/kubepods/poduid-1/${file}`));
  assert.deepEqual(await Promise.all([...files, limit("pids/kubepods/poduid-1/pids.max")]), ["50000", "100000", "77"]);
});

test("pods are not limited in memory and processes unless that is enforced", async (t) => {
  const { limit } = await start(t, []);
  assert.deepEqual(
    [await limit("memory/kubepods/memory.limit_in_bytes"), await limit("pids/kubepods/pids.max")],
    [undefined, undefined],
  );
});

test("each reserved cgroup has its own reservation as limit", async (t) => {
  const { failure, limit } = await start(t, ["kube-reserved"], { kubeReservedCgroup: "/system", systemReservedCgroup: "/none" });
  assert.equal(failure, undefined);
  assert.deepEqual(
    [await limit("memory/system/memory.limit_in_bytes"), await limit("cpu/system/cpu.shares")],
    [undefined, "102"],
  );
  assert.equal(await limit("pids/system/pids.max"), undefined);
});

for (const gates of [["MemoryQoS"], ["QOSReserved"], []]) {
  test(`with ${gates[0] ?? "no"} gate on, only its setting has an effect`, async (t) => {
    const settings = { memoryThrottlingFactor: 0.5, qosReserved: { memory: "50%" } };
    const { cgroups, failure, limit } = await start(t, ["pods"], settings, { gates, version: 2 });
    assert.equal(failure, undefined);
    const requests = { memory: "100Mi" };
    await cgroups?.updateClasses([aNodePod({ containers: [aContainer({ resources: { requests } })] })]);
    const isThrottled = gates.includes("MemoryQoS");
    assert.deepEqual(cgroups?.unifiedOf(aContainer()), isThrottled ? { "memory.high": String(384 * 1024 ** 2) } : {});
    assert.equal(await limit("kubepods/memory.min"), isThrottled ? String(100 * 1024 ** 2) : undefined);
    const left = gates.includes("QOSReserved") ? String(718 * 1024 ** 2) : undefined;
    assert.equal(await limit("kubepods/besteffort/memory.max"), left);
  });
}

test("cgroups of pods that cannot be made end the program with the reason, and without an event", async (t) => {
  const { events, failure } = await start(t, ["pods"], {}, { obstacle: "memory/kubepods" });
  assert.match(failure ?? "", /^Failed to initialize the cgroups of pods: E(EXIST|NOTDIR): .*memory\/kubepods/);
  assert.deepEqual(events, []);
});
