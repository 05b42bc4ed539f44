import assert from "node:assert/strict";
import files from "node:fs";
import { mkdir, mkdtemp, rm, symlink, truncate, writeFile } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { labelNames } from "../runtime/labels.ts";
import { aContainer, aNodePod } from "../testing/builders.ts";
import { newFakeRuntime } from "../testing/fake-runtime.ts";
import { newTreeUsages, observeNode, podUsage, usageBelow } from "./usage.ts";

async function tempDir(t: TestContext): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "cox-usage-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

async function fill(path: string, bytes: number): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, Buffer.alloc(bytes, "x"));
}

test("a folder's usage covers all depths and not the targets of its links", async (t) => {
  const dir = await tempDir(t);
  await fill(join(dir, "outside"), 1_000_000);
  await fill(join(dir, "in/a"), 10_000);
  await fill(join(dir, "in/deep/er/b"), 20_000);
  const before = await usageBelow(join(dir, "in"));
  assert.ok(before.bytes >= 30_000 && before.bytes < 500_000, String(before.bytes));
  assert.equal(before.inodes, 5, "three folders, two files");
  await symlink("../outside", join(dir, "in/link"));
  const after = await usageBelow(join(dir, "in"));
  assert.ok(after.bytes < 500_000);
  assert.equal(after.inodes, 6);
  assert.deepEqual(await usageBelow(join(dir, "none")), { bytes: 0, inodes: 0 });
});

test("a file with holes counts with the blocks that it has", async (t) => {
  const dir = await tempDir(t);
  await fill(join(dir, "sparse"), 1);
  await truncate(join(dir, "sparse"), 100_000_000);
  const { bytes } = await usageBelow(join(dir, "sparse"));
  assert.ok(bytes > 0 && bytes < 1_000_000, String(bytes));
});

test("memory and process IDs are available as the kernel counts them; inactive file cache and buffers can be freed", async (t) => {
  const kernel: Record<string, string> = {
    "/proc/meminfo": "MemTotal: 1000 kB\nMemFree: 100 kB\nBuffers: 30 kB\nInactive: 500 kB\nInactive(file): 200 kB\n",
    "/proc/sys/kernel/pid_max": "4194304\n",
    "/proc/loadavg": "0.1 0.2 0.3 2/304 99999\n",
  };
  t.mock.method(files, "readFileSync", (path: string) => kernel[path] ?? assert.fail(path));
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  const seen = await observeNode("/", "/", undefined);
  assert.deepEqual(seen["memory.available"], { available: 330 * 1024, capacity: 1000 * 1024 });
  assert.deepEqual(seen["pid.available"], { available: 4_194_000, capacity: 4_194_304 });
});

test("a pod's usage is that of its containers, logs, volumes on disk and the agent's files", async (t) => {
  const dir = await tempDir(t);
  const runtime = newFakeRuntime(newFakeClock());
  const stats = (uid: string, name: string, memory: number, disk: number) => ({
    attributes: { labels: { [labelNames.podUid]: uid, [labelNames.containerName]: name } },
    memory: { workingSetBytes: { value: memory } },
    writableLayer: { usedBytes: { value: disk }, inodesUsed: { value: 1 } },
  });
  const given = [
    stats("a", "x", 1, 10),
    stats("a", "x", 2, 20),
    stats("a", "y", 4, 40),
    stats("b", "x", 8, 80),
    stats("a", "other", 100, 1_000),
    { attributes: null, memory: null, writableLayer: null },
    { ...stats("b", "y", 0, 0), memory: null, writableLayer: null },
  ];
  runtime.listContainerStats = async () => given as never;
  const limited = aContainer({ name: "y", resources: { limits: { "ephemeral-storage": "1Gi" } } });
  const volumes = [
    { name: "data", configMap: { name: "cm" } },
    { name: "clone", gitRepo: { repository: "https://git.test/r" } },
    { name: "key", secret: { secretName: "s" } },
    { name: "bounded", emptyDir: { medium: "Memory", sizeLimit: "1Mi" } },
    { name: "scratch", emptyDir: {} },
    { name: "second", emptyDir: {} },
    { name: "memory", emptyDir: { medium: "Memory" } },
  ];
  const pods = [
    aNodePod({ containers: [aContainer({ name: "x" }), limited], volumes }, { uid: "a" }),
    aNodePod(
      {
        containers: [aContainer({ name: "x" }), aContainer({ name: "y" })],
        volumes: volumes.filter(({ emptyDir }) => emptyDir?.sizeLimit === undefined),
      },
      { uid: "b" },
    ),
  ];
  const podDir = (uid: string) => join(dir, "pods", uid);
  const logDir = ({ metadata }: { metadata: { uid: string } }) => join(dir, "logs", metadata.uid);
  const emptyDirOf = (uid: string, name: string) => join(podDir(uid), "volumes/kubernetes.io~empty-dir", name);
  for (const uid of ["a", "b"]) {
    for (const name of ["scratch", "second", "memory", "bounded"]) await fill(join(emptyDirOf(uid, name), "file"), 5_000);
    await fill(join(podDir(uid), "volumes/kubernetes.io~configmap/data/key"), 500_000);
    await fill(join(podDir(uid), "volumes/kubernetes.io~git-repo/clone/file"), 50_000);
    await fill(join(podDir(uid), "volumes/kubernetes.io~secret/key/file"), 5_000);
    for (const name of ["x", "y"]) await fill(join(logDir({ metadata: { uid } }), name, "0.log"), 9_000);
    await fill(join(podDir(uid), "containers/x/message"), 6_000);
    await fill(join(podDir(uid), "etc-hosts"), 100);
  }
  const processes = async (uid: string) => (uid === "a" ? 3 : 5);
  const look = (everyPod: boolean, quotas?: Parameters<typeof podUsage>[0]["quotas"]) =>
    podUsage({ runtime, pods, podDir, logDir, everyPod, processes, quotas, measure: usageBelow });
  const some = await look(false);
  const sizes = async (...paths: string[]) => {
    const found = await Promise.all(paths.map((path) => usageBelow(path)));
    return {
      bytes: found.reduce((sum, { bytes }) => sum + bytes, 0),
      inodes: found.reduce((sum, { inodes }) => sum + inodes, 0),
    };
  };
  const log = (await sizes(join(dir, "logs/a/x"))).bytes;
  const scratch = (await sizes(emptyDirOf("a", "scratch"))).bytes;
  const all = await sizes(
    join(dir, "logs/a/x"),
    join(dir, "logs/a/y"),
    emptyDirOf("a", "scratch"),
    emptyDirOf("a", "second"),
    join(podDir("a"), "volumes/kubernetes.io~configmap/data"),
    join(podDir("a"), "volumes/kubernetes.io~git-repo/clone"),
    join(podDir("a"), "containers"),
    join(podDir("a"), "etc-hosts"),
  );
  assert.deepEqual(some.get("a"), {
    memoryBytes: 7,
    diskBytes: 70 + all.bytes,
    inodes: 3 + all.inodes,
    layers: { bytes: 70, inodes: 3 },
    processes: 3,
    containers: [
      { name: "x", memoryBytes: 3, diskBytes: 30 + log, layerBytes: 30 },
      { name: "y", memoryBytes: 4, diskBytes: 40 + log, layerBytes: 40 },
    ],
    emptyDirs: new Map([
      ["scratch", scratch],
      ["second", scratch],
      ["bounded", scratch],
    ]),
  });
  assert.partialDeepStrictEqual(some.get("b"), { memoryBytes: 8, diskBytes: 80, inodes: 1, processes: 5 });
  assert.equal(some.get("b")?.emptyDirs.size, 0, "nothing limits it, so nothing of it is walked through");
  assert.equal((await look(true)).get("b")?.diskBytes, 80 + all.bytes);
  const quotas = {
    usage: async (path: string) => (path === emptyDirOf("a", "scratch") ? { bytes: 7, inodes: 2 } : undefined),
  } as Parameters<typeof podUsage>[0]["quotas"];
  assert.deepEqual(
    (await look(false, quotas)).get("a")?.emptyDirs,
    new Map([
      ["scratch", 7],
      ["second", scratch],
      ["bounded", scratch],
    ]),
  );
});

test("the disk of images is observed unless it cannot be read, the memory of all pods where that is limited", async (t) => {
  const dir = await tempDir(t);
  const seen = await observeNode(dir, "/proc", { available: 1, capacity: 2 });
  const nothing = { available: 0, capacity: 0 }; // /proc has neither blocks nor inodes
  assert.deepEqual([seen["imagefs.available"], seen["imagefs.inodesFree"]], [nothing, nothing]);
  assert.ok((seen["nodefs.available"]?.capacity ?? 0) > 0);
  assert.deepEqual(seen["allocatableMemory.available"], { available: 1, capacity: 2 });
  const some = await observeNode(dir, join(dir, "none"), undefined);
  assert.deepEqual(Object.keys(some).toSorted(), ["memory.available", "nodefs.available", "nodefs.inodesFree", "pid.available"]);
});

test("a pass waits for measurements until its time is over; they go on, and count in the next pass", async () => {
  const clock = newFakeClock();
  const begun: string[] = [];
  const ends = new Map<string, (inodes: number) => void>();
  const trees = newTreeUsages({
    clock,
    log: discardLogger,
    waitMs: 5_000,
    measure: (path) => {
      begun.push(path);
      return new Promise((resolve) => ends.set(path, (inodes) => resolve({ bytes: inodes, inodes })));
    },
  });
  const look = (...paths: string[]): Promise<number[]> =>
    trees.pass(async (measure) => Promise.all(paths.map(async (path) => (await measure(path)).inodes)));
  const first = look("huge", "small");
  ends.get("small")!(2);
  await clock.advance(5_000);
  assert.deepEqual(await first, [0, 2]);
  ends.get("huge")!(1_000_000);
  await new Promise(setImmediate);
  const second = look("huge", "small");
  assert.deepEqual(begun, ["huge", "small", "huge", "small"]);
  await clock.advance(5_000);
  assert.deepEqual(await second, [1_000_000, 2]);
  const third = look("small");
  await clock.advance(5_000);
  assert.deepEqual(await third, [2]);
  assert.deepEqual(begun.length, 4, "the second pass's measurements still run");
});

test("four trees are measured at a time, one that cannot be measured keeps its last usage", async () => {
  const clock = newFakeClock();
  const running = new Set<string>();
  let most = 0;
  let fails = false;
  const trees = newTreeUsages({
    clock,
    log: discardLogger,
    waitMs: 5_000,
    measure: async (path) => {
      running.add(path);
      most = Math.max(most, running.size);
      await new Promise(setImmediate);
      running.delete(path);
      if (fails && path === "2") throw new Error("du was killed");
      return { bytes: 1, inodes: fails ? 2 : 1 };
    },
  });
  const paths = Array.from({ length: 10 }, (_, i) => String(i));
  const look = (): Promise<number[]> =>
    trees.pass(async (measure) => Promise.all(paths.map(async (path) => (await measure(path)).inodes)));
  assert.deepEqual(
    await look(),
    paths.map(() => 1),
  );
  fails = true;
  assert.deepEqual(
    await look(),
    paths.map((path) => (path === "2" ? 1 : 2)),
  );
  assert.equal(most, 4);
});
