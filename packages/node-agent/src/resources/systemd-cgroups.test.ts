import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { connectToPeer } from "../dbus/connection.ts";
import { Systemd } from "../dbus/systemd.ts";
import type { NodePod } from "../pod/pod.ts";
import { aContainer, aNodePod } from "../testing/builders.ts";
import { type FakeSystemd, startFakeSystemd } from "../testing/fake-systemd.ts";
import { systemdNames } from "./cgroup-names.ts";
import { type Cgroups, newCgroups } from "./cgroups.ts";

const mib = 1024 ** 2;
const controllers = ["cpu", "memory", "pids", "freezer", "systemd"];
/** Files that systemd creates in a v1 hierarchy. */
const ofSystemd = ["cpu", "memory", "pids", "systemd"];
const podSlice = "kubepods-burstable-poduid_1.slice";
const podPath = `/kubepods.slice/kubepods-burstable.slice/${podSlice}`;

interface Node {
  cgroups: Cgroups;
  played: FakeSystemd;
  mountPoint: string;
  read(path: string): Promise<string>;
  /** Simulates a restarted agent. */
  again(): Promise<Cgroups>;
}

/** Controllers as plain directories; the fake systemd creates and removes its own. */
async function aNode(t: TestContext): Promise<Node> {
  const mountPoint = await mkdtemp(join(tmpdir(), "cox-slices-"));
  t.after(() => rm(mountPoint, { recursive: true, force: true }));
  for (const controller of controllers) {
    await mkdir(join(mountPoint, controller));
    await writeFile(join(mountPoint, controller, "cgroup.procs"), "");
  }
  const foldersOf = (unit: string): string[] =>
    ofSystemd.map((controller) => join(mountPoint, controller, systemdNames.pathOf(systemdNames.parse(unit))));
  const played = await startFakeSystemd(t, {
    onStart(unit) {
      for (const dir of foldersOf(unit)) mkdirSync(dir, { recursive: true });
    },
    onStop(unit) {
      for (const dir of foldersOf(unit)) rmSync(dir, { recursive: true });
    },
  });
  const again = (): Promise<Cgroups> => open(t, played, mountPoint);
  const cgroups = await again();
  await cgroups.start({ milliCpu: 2000, memoryBytes: 1024 * mib, pids: 1000 }, true);
  return { cgroups, played, mountPoint, again, read: (path) => readFile(join(mountPoint, path), "utf8") };
}

function open(t: TestContext, played: FakeSystemd, mountPoint: string): Promise<Cgroups> {
  const systemd = new Systemd({ clock: realClock, connect: () => connectToPeer(played.address) });
  t.after(() => systemd.close());
  const settings = { root: "/", perQos: true, cfsQuota: true, cfsPeriodUs: 100_000, podPidsLimit: 50 };
  return newCgroups({ systemd, ...settings, log: discardLogger, mountPoint });
}

const aBurstablePod = (): NodePod => {
  const resources = { requests: { cpu: "250m" }, limits: { cpu: "500m", memory: "64Mi" } };
  return aNodePod({ containers: [{ ...aContainer(), resources }] });
};

test("QoS classes are slices below one limited to allocatable", async (t) => {
  const { played, read } = await aNode(t);
  assert.deepEqual([...played.units.keys()], ["kubepods.slice", "kubepods-burstable.slice", "kubepods-besteffort.slice"]);
  hasFields(Object.fromEntries(played.units.get("kubepods.slice") ?? []), {
    Wants: ["-.slice"],
    MemoryLimit: BigInt(1024 * mib),
    CPUShares: 2048n,
    TasksMax: 1000n,
  });
  assert.equal(played.units.get("kubepods-besteffort.slice")?.get("CPUShares"), 2n);
  assert.equal(await read("memory/kubepods.slice/memory.limit_in_bytes"), String(1024 * mib));
});

test("a pod gets a slice with its limits, in the controllers that systemd leaves alone, too", async (t) => {
  const { cgroups, played, read, mountPoint } = await aNode(t);
  const pod = aBurstablePod();
  assert.equal(cgroups.parentOf(pod), podPath);
  await cgroups.ensure(pod);
  hasFields(Object.fromEntries(played.units.get(podSlice) ?? []), {
    Wants: ["kubepods-burstable.slice"],
    DefaultDependencies: false,
    MemoryLimit: BigInt(64 * mib),
    CPUShares: 256n,
    CPUQuotaPerSecUSec: 500_000n,
    TasksMax: 50n,
  });
  assert.equal(await read(`cpu${podPath}/cpu.cfs_quota_us`), "50000");
  assert.deepEqual(await readdir(join(mountPoint, `freezer${podPath}`)), []);
  assert.deepEqual([await cgroups.list(), await cgroups.exists("uid-1")], [["uid-1"], true]);
});

test("an unchanged cgroup is not sent to systemd again; a removed one is created again", async (t) => {
  const { cgroups, played, mountPoint } = await aNode(t);
  const pod = aBurstablePod();
  await cgroups.ensure(pod);
  await cgroups.updateClasses([pod]);
  const before = played.calls.length;
  await cgroups.ensure(pod);
  await cgroups.updateClasses([pod]);
  assert.equal(played.calls.length, before);
  await cgroups.updateClasses([]);
  assert.deepEqual(played.calls.slice(before), ["SetUnitProperties kubepods-burstable.slice"]);
  played.units.delete(podSlice);
  for (const controller of controllers) await rm(join(mountPoint, controller, podPath), { recursive: true, force: true });
  await cgroups.ensure(pod);
  assert.equal(played.units.get(podSlice)?.get("CPUShares"), 256n);
});

test("a slice is removed after its last process; a restarted agent finds those that are left", async (t) => {
  const { cgroups, played, mountPoint, again } = await aNode(t);
  const pod = aBurstablePod();
  await cgroups.ensure(pod);
  const scope = join(mountPoint, `memory${podPath}`, "cri-containerd-1.scope");
  await mkdir(scope);
  await writeFile(join(scope, "cgroup.procs"), "4711\n");
  const next = await again();
  assert.deepEqual(await next.list(), ["uid-1"]);
  assert.equal(await next.remove("uid-1"), false);
  assert.ok(played.units.has(podSlice));
  await writeFile(join(scope, "cgroup.procs"), "");
  assert.equal(await next.remove("uid-1"), true);
  assert.deepEqual([played.units.has(podSlice), await next.list()], [false, []]);
  assert.deepEqual(await readdir(join(mountPoint, "freezer/kubepods.slice/kubepods-burstable.slice")), []);
});

test("reserved cgroups are named as systemd names them", async (t) => {
  const { cgroups, played, mountPoint } = await aNode(t);
  const reserved = { cpu: "500m", memory: "256Mi" };
  await assert.rejects(cgroups.enforceReserved("/kube-reserved.slice", reserved), {
    message: '["kube" "reserved"] cgroup does not exist',
  });
  for (const controller of controllers) await mkdir(join(mountPoint, controller, "system.slice"));
  played.units.set("system.slice", new Map());
  await cgroups.enforceReserved("/system.slice", reserved);
  assert.deepEqual(Object.fromEntries(played.units.get("system.slice") ?? []), {
    MemoryLimit: BigInt(256 * mib),
    CPUShares: 512n,
  });
  const refused = { message: 'the limits of cgroup ["system"] cannot be set' };
  played.units.delete("system.slice");
  await assert.rejects(cgroups.enforceReserved("/system.slice", { ...reserved, cpu: "1" }), refused, "systemd refuses");
  played.units.set("system.slice", new Map());
  await rm(join(mountPoint, "cpu/system.slice"), { recursive: true });
  await assert.rejects(cgroups.enforceReserved("/system.slice", { ...reserved, cpu: "2" }), refused, "the kernel refuses");
});

test("a pod waits while systemd cannot create its slice", async (t) => {
  const { cgroups, played } = await aNode(t);
  played.nextResult = "failed";
  await assert.rejects(cgroups.ensure(aBurstablePod()), {
    message: `failed to create container for [kubepods burstable poduid-1] : error creating systemd unit \`${podSlice}\`: got \`failed\``,
  });
  await cgroups.ensure(aBurstablePod());
  assert.ok(played.units.has(podSlice));
});

test("with cgroup v2 systemd gets v2 properties, and controllers are delegated", async (t) => {
  const mountPoint = await mkdtemp(join(tmpdir(), "cox-slices-"));
  t.after(() => rm(mountPoint, { recursive: true, force: true }));
  const makeFolder = (dir: string): void => {
    mkdirSync(dir, { recursive: true });
    writeFileSync(join(dir, "cgroup.controllers"), "cpu memory pids\n");
  };
  makeFolder(mountPoint);
  const played = await startFakeSystemd(t, {
    onStart: (unit) => makeFolder(join(mountPoint, systemdNames.pathOf(systemdNames.parse(unit)))),
  });
  const cgroups = await open(t, played, mountPoint);
  await cgroups.start({ milliCpu: 2000, memoryBytes: 1024 * mib }, true);
  await cgroups.ensure(aBurstablePod());
  assert.partialDeepStrictEqual(Object.fromEntries(played.units.get(podSlice) ?? []), {
    IOAccounting: true,
    MemoryMax: BigInt(64 * mib),
    CPUWeight: 10n,
    CPUQuotaPerSecUSec: 500_000n,
  });
  const read = (file: string): Promise<string> => readFile(join(mountPoint, podPath, file), "utf8");
  assert.deepEqual([await read("cpu.weight"), await read("cpu.max")], ["10", "50000 100000"]);
  assert.equal(await readFile(join(mountPoint, "kubepods.slice/cgroup.subtree_control"), "utf8"), "+pids");
});
