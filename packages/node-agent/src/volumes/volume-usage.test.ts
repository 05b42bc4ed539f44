import assert from "node:assert/strict";
import files, { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { aNodePod } from "../testing/builders.ts";
import { writeAtomically } from "./atomic-writer.ts";
import { filesystemSize, type MeasuredVolume, walked, walkedOnChange } from "./measure.ts";
import { newVolumeUsages } from "./volume-usage.ts";

test("a volume's usage is that of the last walk and excludes links' targets", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "cox-usage-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const scratch = join(dir, "uid-1/volumes/kubernetes.io~empty-dir/scratch");
  await mkdir(join(scratch, "folder"), { recursive: true });
  await writeFile(join(scratch, "folder/file"), Buffer.alloc(100_000, 1));
  await symlink("/usr", join(scratch, "link"));
  const clock = newFakeClock();
  const volume = { path: scratch, readOnly: false, measure: () => walked(scratch) };
  const unknown = { path: "/", readOnly: false };
  const broken = { ...unknown, measure: () => Promise.reject(new Error("the driver is away")) };
  const volumes = new Map(Object.entries({ unknown, broken, scratch: volume }));
  const usages = newVolumeUsages({
    pods: () => [aNodePod()],
    volumes: { of: () => volumes },
    reportPodEvent: () => assert.fail("nothing is abnormal"),
    clock,
    log: discardLogger,
  });
  assert.deepEqual(usages.of("uid-1"), []);
  await usages.refresh();
  const [usage, ...more] = usages.of("uid-1");
  assert.deepEqual([usage?.name, usage?.at, usage?.inodesUsed, more], ["scratch", clock.now(), 4, []]);
  assert.ok((usage?.usedBytes ?? 0) >= 100_000 && (usage?.usedBytes ?? 0) < 200_000, `${usage?.usedBytes} bytes`);
  assert.ok((usage?.capacityBytes ?? 0) > 0 && (usage?.availableBytes ?? 0) > 0);
  await writeFile(join(scratch, "more"), Buffer.alloc(200_000, 1));
  assert.ok((usages.of("uid-1")[0]?.usedBytes ?? 0) < 200_000, "it was not walked yet");
  await usages.refresh();
  assert.ok((usages.of("uid-1")[0]?.usedBytes ?? 0) >= 300_000);
});

test("blocks that are reserved for root are neither used nor available in a volume's file system", async (t) => {
  t.mock.method(files, "statfs", async () => ({ blocks: 100, bsize: 10, bfree: 50, bavail: 45, files: 20, ffree: 8 }));
  t.after(syncBuiltinESMExports);
  syncBuiltinESMExports();
  const measured = await filesystemSize("/volume");
  t.mock.restoreAll();
  const bytes = { capacityBytes: 1000, usedBytes: 500, availableBytes: 450 };
  assert.deepEqual(measured, { ...bytes, inodes: 20, inodesUsed: 12, inodesFree: 8 });
});

test("the last measurement is shown until the next one is complete, and an ended pod has none", async () => {
  const size = { capacityBytes: 10, usedBytes: 3, availableBytes: 7, inodes: 0, inodesUsed: 0, inodesFree: 0 };
  let measuring: Promise<MeasuredVolume> = Promise.resolve(size);
  let pods = [aNodePod()];
  const usages = newVolumeUsages({
    pods: () => pods,
    volumes: { of: () => new Map([["data", { path: "/", readOnly: false, measure: () => measuring }]]) },
    reportPodEvent: () => assert.fail("nothing is abnormal"),
    clock: newFakeClock(),
    log: discardLogger,
  });
  await usages.refresh();
  const { promise, resolve } = Promise.withResolvers<MeasuredVolume>();
  measuring = promise;
  const refreshed = usages.refresh();
  assert.equal(usages.of("uid-1")[0]?.usedBytes, 3);
  resolve({ ...size, usedBytes: 4 });
  await refreshed;
  assert.equal(usages.of("uid-1")[0]?.usedBytes, 4);
  pods = [];
  await usages.refresh();
  assert.deepEqual(usages.of("uid-1"), []);
});

test("a pod gets an event at each check of a volume that its driver finds abnormal", async () => {
  const size = { capacityBytes: 10, usedBytes: 3, availableBytes: 7, inodes: 0, inodesUsed: 0, inodesFree: 0 };
  let found: MeasuredVolume = { ...size, abnormal: "the disk is gone" };
  const volumes = new Map([["data", { path: "/", readOnly: false, measure: async () => found }]]);
  const reported: unknown[] = [];
  const usages = newVolumeUsages({
    pods: () => [aNodePod()],
    volumes: { of: () => volumes },
    reportPodEvent: (pod, container, ...event) => void reported.push([pod.metadata.name, container, ...event]),
    clock: newFakeClock(),
    log: discardLogger,
  });
  await usages.refresh();
  const event = ["web", undefined, "Warning", "VolumeConditionAbnormal", "Volume data: the disk is gone"];
  assert.deepEqual(reported, [event]);
  const [usage] = usages.of("uid-1");
  assert.deepEqual(usage, { name: "data", at: usage?.at, ...size }, "what is shown has 1.23's fields");
  await usages.refresh();
  assert.deepEqual(reported, [event, event]);
  found = size;
  await usages.refresh();
  assert.equal(reported.length, 2);
  found = { ...size, abnormal: "" };
  await usages.refresh();
  assert.deepEqual(reported.slice(2), [[...event.slice(0, -1), "Volume data: "]], "its driver need not say why");
});

test("a folder that is written atomically is walked again after its contents were replaced", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "cox-usage-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const measure = walkedOnChange(dir);
  const write = (bytes: number, at: number) =>
    writeAtomically(dir, new Map([["a", { data: Buffer.alloc(bytes), mode: 0o644 }]]), at);
  const before = await measure();
  await write(1, 0);
  const small = await measure();
  assert.ok(small.inodesUsed > before.inodesUsed);
  await write(100_000, 1_000);
  const { usedBytes, inodesUsed, capacityBytes } = await measure();
  assert.ok(usedBytes >= small.usedBytes + 90_000);
  assert.deepEqual([inodesUsed, capacityBytes], [small.inodesUsed, small.capacityBytes]);
  await writeFile(join(dir, "other"), "not written atomically");
  assert.equal((await measure()).inodesUsed, inodesUsed);
});

test("a pod with a volume that takes long to measure does not delay the others", async () => {
  const size = { capacityBytes: 10, usedBytes: 3, availableBytes: 7, inodes: 0, inodesUsed: 0, inodesFree: 0 };
  const slow = Promise.withResolvers<MeasuredVolume>();
  const pods = ["slow", "a", "b"].map((uid) => aNodePod({}, { uid }));
  const usages = newVolumeUsages({
    pods: () => pods,
    volumes: {
      of: (uid) =>
        new Map([["v", { path: "/", readOnly: false, measure: () => (uid === "slow" ? slow.promise : Promise.resolve(size)) }]]),
    },
    reportPodEvent: () => assert.fail("nothing is abnormal"),
    clock: newFakeClock(),
    log: discardLogger,
  });
  const refreshed = usages.refresh();
  await new Promise(setImmediate);
  assert.deepEqual(
    pods.map(({ metadata }) => usages.of(metadata.uid).length),
    [0, 1, 1],
  );
  slow.resolve(size);
  await refreshed;
  assert.equal(usages.of("slow").length, 1);
});
