import assert from "node:assert/strict";
import files, { mkdir, mkdtemp, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { aContainer, aNodePod } from "../testing/builders.ts";
import { newFakeRuntime } from "../testing/fake-runtime.ts";
import { collectContainers } from "./container-gc.ts";
import { type ImageGcOptions, newImageGc } from "./image-gc.ts";
import { ImagePuller, type ImagePullerOptions } from "./images.ts";
import { labelNames } from "./labels.ts";
import { RuntimeError } from "./runtime.ts";

function pulling(options: Partial<ImagePullerOptions> = {}) {
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  const puller = new ImagePuller({ runtime, clock, serialize: false, qps: 0, burst: 0, ...options });
  /** @returns the reason of the failure; "" on success */
  const ensure = (image: string, uid = "uid-1"): Promise<string> =>
    puller
      .ensure(aNodePod({}, { uid }), aContainer({ image }), [], {}, () => undefined)
      .then(
        () => "",
        (err: { reason: string }) => err.reason,
      );
  return { clock, runtime, ensure, puller };
}

test("a failing image pull delays neither other pods nor other images", async () => {
  const { ensure } = pulling();
  assert.deepEqual(
    [await ensure("r.test/a:1"), await ensure("r.test/a:1"), await ensure("r.test/a:1", "uid-2"), await ensure("r.test/b:1")],
    ["ErrImagePull", "ImagePullBackOff", "ErrImagePull", "ErrImagePull"],
  );
});

test("each step of a pull is an event of its own type and reason, and a container in back-off has one too", async () => {
  const { clock, runtime, puller } = pulling();
  const events: string[] = [];
  const ensure = (policy: string) =>
    puller
      .ensure(aNodePod(), aContainer({ image: "r.test/a", imagePullPolicy: policy }), [], {}, (type, reason, message) =>
        events.push(`${type} ${reason} ${message}`),
      )
      .catch(() => undefined);
  await ensure("Never");
  assert.deepEqual(events.splice(0), [
    'Warning ErrImageNeverPull Container image "r.test/a" is not present with pull policy of Never',
  ]);
  runtime.failNext("PullImage", new RuntimeError("Unknown", "no such host"));
  await ensure("IfNotPresent");
  await ensure("IfNotPresent");
  assert.deepEqual(events.splice(0), [
    'Normal Pulling Pulling image "r.test/a"',
    'Warning Failed Failed to pull image "r.test/a": rpc error: code = Unknown desc = no such host',
    'Normal BackOff Back-off pulling image "r.test/a"',
  ]);
  await clock.advance(10_000);
  runtime.pullImage = async () => {
    await clock.advance(1_500);
    return "sha256:r.test/a:latest";
  };
  runtime.addImage("r.test/a:latest");
  await ensure("Always");
  await ensure("IfNotPresent");
  assert.deepEqual(events.splice(0), [
    'Normal Pulling Pulling image "r.test/a"',
    'Normal Pulled Successfully pulled image "r.test/a" in 1.5s',
    'Normal Pulled Container image "r.test/a" already present on machine',
  ]);
});

for (const { image, pulled } of [
  { image: "r.test:5000/team/app", pulled: "r.test:5000/team/app:latest" },
  { image: "r.test:5000/team/app:2", pulled: "r.test:5000/team/app:2" },
  { image: `r.test/app@sha256:${"a".repeat(64)}`, pulled: `r.test/app@sha256:${"a".repeat(64)}` },
]) {
  test(`the image ${image} is looked for and pulled as ${pulled}`, async () => {
    const { runtime, ensure } = pulling();
    const { imageStatus } = runtime;
    const asked: string[] = [];
    runtime.imageStatus = (name) => {
      asked.push(name);
      return imageStatus(name);
    };
    runtime.registry.add(pulled);
    assert.equal(await ensure(image), "");
    assert.deepEqual([runtime.calls, asked], [[`PullImage ${pulled}`], [pulled, pulled]]);
  });
}

test("each failed pull doubles the back-off, a check during the back-off does not", async () => {
  const { clock, runtime, ensure } = pulling();
  for (const waitMs of [10_000, 20_000, 40_000]) {
    assert.equal(await ensure("r.test/a:1"), "ErrImagePull");
    await clock.advance(waitMs - 1);
    assert.equal(await ensure("r.test/a:1"), "ImagePullBackOff");
    await clock.advance(1);
  }
  runtime.registry.add("r.test/a:1");
  assert.equal(await ensure("r.test/a:1"), "");
});

test("the back-off of failed pulls ends at five minutes", async () => {
  const { clock, ensure } = pulling();
  for (const waitMs of [10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000]) {
    assert.equal(await ensure("r.test/a:1"), "ErrImagePull");
    await clock.advance(waitMs - 1);
    assert.equal(await ensure("r.test/a:1"), "ImagePullBackOff", `${waitMs} ms`);
    await clock.advance(1);
  }
});

test("pulls beyond the burst fail without a request to the registry, and are allowed again later", async () => {
  const { clock, runtime, ensure } = pulling({ qps: 2, burst: 2 });
  for (const name of "abcdef") runtime.registry.add(`r.test/${name}:1`);
  assert.deepEqual(
    [await ensure("r.test/a:1"), await ensure("r.test/b:1"), await ensure("r.test/c:1")],
    ["", "", "ErrImagePull"],
  );
  assert.equal(runtime.calls.length, 2);
  await clock.advance(499);
  assert.equal(await ensure("r.test/f:1"), "ErrImagePull", "not a whole pull yet");
  await clock.advance(1);
  assert.deepEqual([await ensure("r.test/d:1"), await ensure("r.test/e:1")], ["", "ErrImagePull"], "one of the two a second");
});

test("a pull that exceeds the rate backs off like one that fails, and what was pulled is looked at again", async () => {
  const { clock, runtime, ensure, puller } = pulling({ qps: 1, burst: 1 });
  for (const name of "ab") runtime.registry.add(`r.test/${name}:1`);
  const container = aContainer({ image: "r.test/a:1" });
  const { image } = await puller.ensure(aNodePod(), container, [], {}, () => undefined);
  assert.equal(image?.id, "sha256:r.test/a:1");
  assert.deepEqual([await ensure("r.test/b:1"), await ensure("r.test/b:1")], ["ErrImagePull", "ImagePullBackOff"]);
  await clock.advance(10_000);
  assert.equal(await ensure("r.test/b:1"), "");
});

test("the pod's credentials are tried first, then the node's, then those of plugins", async () => {
  const login = (username: string) => ({ pattern: "r.test", auth: { username, password: "p" } });
  const { runtime, puller } = pulling({
    nodeLogins: async () => [login("node")],
    credentialProviders: { loginsFor: async () => [login("plugin")] },
  });
  const tried: (string | undefined)[] = [];
  runtime.pullImage = async (image, auth) => {
    tried.push(auth?.username);
    if (auth?.username !== "plugin") throw new RuntimeError("Unknown", "denied");
    return image;
  };
  const config = Buffer.from(JSON.stringify({ auths: { "r.test": { username: "pod", password: "p" } } })).toString("base64");
  const secret = { metadata: {}, type: "kubernetes.io/dockerconfigjson", data: { ".dockerconfigjson": config } };
  await puller.ensure(aNodePod(), aContainer({ image: "r.test/a:1" }), [secret], {}, () => undefined);
  assert.deepEqual(tried, ["pod", "node", "plugin"]);
});

test("nothing is pulled while ImageStatus fails, and the next sync calls it again without back-off", async () => {
  const { runtime, ensure } = pulling();
  const { imageStatus } = runtime;
  runtime.registry.add("r.test/a:1");
  runtime.imageStatus = () => Promise.reject(new RuntimeError("Unavailable", "away"));
  assert.deepEqual([await ensure("r.test/a:1"), runtime.calls], ["ImageInspectError", []]);
  runtime.imageStatus = imageStatus;
  assert.equal(await ensure("r.test/a:1"), "");
});

test("three serialized pulls run in order, though the first fails", async () => {
  const { runtime, ensure } = pulling({ serialize: true });
  const begun: { image: string; end: () => void }[] = [];
  runtime.pullImage = (image) => {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    begun.push({ image, end: () => (image === "r.test/a:1" ? reject(new Error("no")) : resolve(image)) });
    return promise;
  };
  const all = Promise.all(["a", "b", "c"].map((name) => ensure(`r.test/${name}:1`)));
  for (let count = 1; count <= 3; count++) {
    await settle();
    assert.equal(begun.length, count);
    begun.at(-1)?.end();
  }
  assert.deepEqual(
    [begun.map(({ image }) => image), await all],
    [["a", "b", "c"].map((name) => `r.test/${name}:1`), ["ErrImagePull", "", ""]],
  );
});

function collecting(availableBytes: number, more: Partial<ImageGcOptions> = {}) {
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  const disk = { capacityBytes: 100_000, availableBytes };
  runtime.imageFilesystems = async () => [{ fsId: { mountpoint: "/images" } }] as never;
  const reported: string[] = [];
  const options: ImageGcOptions = {
    runtime,
    clock,
    log: discardLogger,
    highThresholdPercent: 85,
    lowThresholdPercent: 80,
    minAgeMs: 60_000,
    sandboxImage: "pause",
    event: (_, reason) => void reported.push(reason),
    filesystem: async () => disk,
    ...more,
  };
  const gc = newImageGc(options);
  const removed = (): string[] =>
    runtime.calls.filter((call) => call.startsWith("RemoveImage")).map((call) => call.slice("RemoveImage sha256:".length));
  return { clock, runtime, gc, disk, options, reported, removed };
}

test("images are removed from the high threshold on, until usage is at the low one", async () => {
  const { clock, runtime, gc, disk, removed } = collecting(50_000);
  for (const name of ["a", "b", "c", "pause"]) runtime.addImage(name, { sizeBytes: 3_000 });
  await gc.collect();
  await clock.advance(60_000);
  disk.availableBytes = 16_000;
  await gc.collect();
  assert.deepEqual(removed(), []);
  disk.availableBytes = 15_000;
  await gc.collect();
  assert.deepEqual(removed(), ["a", "b"]);
});

test("an image that cannot be removed does not prevent removing others, and does not count as freed", async () => {
  const { clock, runtime, gc, disk, reported, removed } = collecting(50_000);
  for (const name of ["a", "b"]) runtime.addImage(name, { sizeBytes: 4_000 });
  await gc.collect();
  await clock.advance(60_000);
  disk.availableBytes = 15_000;
  runtime.failNext("RemoveImage", new RuntimeError("Unknown", "in use"));
  const failure = "with errors in image deletion: rpc error: code = Unknown desc = in use";
  await assert.rejects(gc.collect(), { message: `wanted to free 5000 bytes, but freed 4000 bytes space ${failure}` });
  assert.deepEqual([removed(), reported], [["a", "b"], []]);
  await assert.rejects(gc.collect(), /Wanted to free 5000 bytes, but freed 4000 bytes$/);
  assert.deepEqual(
    [removed(), reported],
    [["a", "b", "a"], ["FreeDiskSpaceFailed"]],
    "the one that could not be removed is tried again",
  );
});

test("the age of an image that was pulled again counts from the new pull", async () => {
  const { clock, runtime, gc, disk, removed } = collecting(50_000);
  runtime.addImage("a", { sizeBytes: 9_000 });
  await gc.collect();
  await clock.advance(60_000);
  await runtime.removeImage("a");
  await gc.collect();
  runtime.addImage("a", { sizeBytes: 9_000 });
  const before = removed().length;
  disk.availableBytes = 10_000;
  await assert.rejects(gc.collect(), /freed 0 bytes/);
  assert.equal(removed().length, before);
});

/** Exited containers, the oldest first; all are old enough to be removed. */
async function ended(...names: [uid: string, container: string][]) {
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  for (const [uid, container] of names) {
    const labels = { [labelNames.podUid]: uid, [labelNames.podName]: uid, [labelNames.podNamespace]: "default" };
    const sandbox = await runtime.runPodSandbox({ metadata: { name: uid, uid }, labels }, "");
    const metadata = { name: container, attempt: 0 };
    const id = await runtime.createContainer(
      sandbox,
      { metadata, labels: { ...labels, [labelNames.containerName]: container } },
      {},
    );
    await runtime.startContainer(id);
    runtime.exit(id, 1);
    await runtime.stopPodSandbox(sandbox);
    await clock.advance(1_000);
  }
  await clock.advance(3_600_000);
  runtime.calls.splice(0);
  const collect = (
    known: readonly string[],
    limits: { maxPerContainer?: number; maxTotal?: number; minAgeMs?: number; synced?: boolean } = {},
  ) =>
    collectContainers({
      runtime,
      clock,
      log: discardLogger,
      containerLogsDir: "/nonexistent",
      maxPerContainer: limits.maxPerContainer ?? 1,
      maxTotal: limits.maxTotal ?? -1,
      minAgeMs: limits.minAgeMs ?? 0,
      isKnown: (uid) => known.includes(uid),
      allSourcesSynced: () => limits.synced ?? true,
    });
  return { clock, runtime, collect };
}

test("of each container of each pod the newest instance is kept, and a sandbox is removed with its last container", async () => {
  const { runtime, collect } = await ended(["p", "a"], ["p", "a"], ["p", "b"], ["q", "a"], ["q", "a"]);
  await collect(["p", "q"]);
  assert.deepEqual(runtime.calls, ["RemoveContainer a", "RemoveContainer a", "RemovePodSandbox p", "RemovePodSandbox q"]);
  assert.equal(runtime.containers.size, 3);
});

test("a container that cannot be removed keeps its sandbox, and does not prevent removing other containers", async () => {
  const { runtime, collect } = await ended(["gone", "a"], ["also-gone", "b"]);
  runtime.failNext("RemoveContainer", new RuntimeError("Unknown", "busy"));
  await collect([]);
  assert.deepEqual([runtime.containers.size, runtime.sandboxes.size], [1, 1]);
  const [left] = runtime.containers.values();
  assert.equal([...runtime.sandboxes.keys()][0], left?.sandboxId);
  await collect([]);
  assert.deepEqual([runtime.containers.size, runtime.sandboxes.size], [0, 0]);
});

test("a sandbox that cannot be removed, or is gone already, does not prevent removing others", async () => {
  const { runtime, collect } = await ended(["gone", "a"], ["also-gone", "b"], ["third", "c"]);
  runtime.failNext("RemovePodSandbox", new RuntimeError("Unknown", "busy"));
  await collect([]);
  assert.equal(runtime.sandboxes.size, 1);
  runtime.failNext("RemovePodSandbox", new RuntimeError("NotFound", "gone"));
  await collect([]);
  await collect([]);
  assert.equal(runtime.sandboxes.size, 0);
});

test("before all sources are ready no container counts as orphaned; then the oldest beyond the total are removed", async () => {
  const { runtime, collect } = await ended(["p", "a"], ["q", "a"], ["r", "a"]);
  await collect([], { synced: false });
  assert.equal(runtime.containers.size, 3);
  await collect(["p", "q", "r"], { maxTotal: 2 });
  assert.deepEqual(
    [...runtime.containers.values()].map(({ config }) => config.labels?.[labelNames.podUid]),
    ["q", "r"],
  );
  await collect(["p", "q", "r"], { maxPerContainer: 0 });
  assert.equal(runtime.containers.size, 0);
});

test("failures to remove images are told although enough was freed", async () => {
  const { clock, runtime, gc, disk, reported } = collecting(50_000);
  for (const name of ["a", "b", "c"]) runtime.addImage(name, { sizeBytes: 9_000 });
  await gc.collect();
  await clock.advance(60_000);
  disk.availableBytes = 15_000;
  for (const why of ["in use", "away"]) runtime.failNext("RemoveImage", new RuntimeError("Unknown", why));
  const failures = ["in use", "away"].map((why) => `rpc error: code = Unknown desc = ${why}`).join(", ");
  await assert.rejects(gc.collect(), {
    message: `wanted to free 5000 bytes, but freed 9000 bytes space with errors in image deletion: [${failures}]`,
  });
  assert.deepEqual(reported, []);
});

test("images that were there when the agent started are old enough to be removed, later ones are not", async () => {
  const { runtime, gc, removed } = collecting(10_000);
  for (const name of ["a", "b"]) runtime.addImage(name, { sizeBytes: 9_000 });
  const { listImages } = runtime;
  runtime.listImages = () => Promise.reject(new RuntimeError("Unavailable", "away"));
  await assert.rejects(gc.collect(), /away/);
  runtime.listImages = listImages;
  runtime.addImage("c", { sizeBytes: 9_000 });
  await gc.removeUnused();
  assert.deepEqual(removed(), ["a", "b", "c"], "the first list that was read");
  runtime.addImage("d", { sizeBytes: 9_000 });
  await gc.removeUnused();
  assert.deepEqual(removed(), ["a", "b", "c"]);
});

test("images of all containers, also exited ones, and of sandboxes are kept; others are removed when the disk is full", async () => {
  const { clock, runtime, gc, removed } = collecting(50_000);
  await gc.collect();
  for (const name of ["first", "second", "ended", "pause", "unused", "old"]) runtime.addImage(name);
  const sandbox = await runtime.runPodSandbox({ metadata: { name: "p" } }, "");
  for (const name of ["first", "second", "ended"]) {
    const id = await runtime.createContainer(sandbox, { metadata: { name }, image: { image: `sha256:${name}` } }, {});
    await runtime.startContainer(id);
    if (name === "ended") runtime.exit(id, 0);
  }
  await gc.removeUnused();
  assert.deepEqual(removed(), [], "all are younger than the minimum age");
  await clock.advance(60_000);
  runtime.addImage("young");
  await gc.removeUnused();
  assert.deepEqual(removed().toSorted(), ["old", "unused"]);
});

test("the image of sandboxes is kept by whatever name it is configured; while it is unknown the others are collected", async () => {
  const sandboxImage = "registry.test/pause@sha256:0123";
  const { clock, runtime, gc, removed } = collecting(50_000, { sandboxImage });
  runtime.addImage("pause");
  const { imageStatus } = runtime;
  runtime.imageStatus = (image) => imageStatus(image === sandboxImage ? "pause" : image);
  await gc.removeUnused();
  await clock.advance(60_000);
  await gc.removeUnused();
  assert.deepEqual(removed(), []);
  runtime.addImage("unused");
  runtime.imageStatus = () => Promise.reject(new RuntimeError("Unavailable", "away"));
  await gc.removeUnused();
  await clock.advance(60_000);
  await gc.removeUnused();
  assert.deepEqual(removed().toSorted(), ["pause", "unused"]);
});

test("of images that were never used the one that was seen first is removed first, by the first of the file systems", async () => {
  const mounted: string[] = [];
  const { clock, runtime, gc, removed } = collecting(0, {
    async filesystem(mountPoint) {
      mounted.push(mountPoint);
      return { capacityBytes: 100_000, availableBytes: 15_000 };
    },
  });
  runtime.imageFilesystems = async () => [{ fsId: { mountpoint: "/images" } }, { fsId: { mountpoint: "/other" } }] as never;
  await assert.rejects(gc.collect());
  runtime.addImage("z", { sizeBytes: 5_000 });
  await assert.rejects(gc.collect());
  await clock.advance(1_000);
  runtime.addImage("a", { sizeBytes: 5_000 });
  await assert.rejects(gc.collect());
  await clock.advance(60_000);
  const { listImages } = runtime;
  runtime.listImages = async () => (await listImages()).toReversed();
  await gc.collect();
  assert.deepEqual([removed(), new Set(mounted)], [["z"], new Set(["/images"])]);
});

test("space that only root may use does not count as available", async (t) => {
  t.mock.method(files, "statfs", async () => ({ blocks: 100, bsize: 10, bfree: 50, bavail: 10 }));
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  const { filesystem: _, ...options } = collecting(0).options;
  await assert.rejects(
    newImageGc(options).collect(),
    /^Error: failed to garbage collect .* Wanted to free 100 bytes, but freed 0 bytes$/,
  );
});

test("a removed container's log and the link to it are removed with it", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "cox-gc-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  const labels = { [labelNames.podUid]: "gone", [labelNames.podName]: "web", [labelNames.podNamespace]: "default" };
  const sandbox = await runtime.runPodSandbox({ metadata: { name: "web" }, labels, logDirectory: dir }, "");
  const own = { metadata: { name: "main" }, labels: { ...labels, [labelNames.containerName]: "main" }, logPath: "main/0.log" };
  const id = await runtime.createContainer(sandbox, own, {});
  await runtime.startContainer(id);
  runtime.exit(id, 0);
  await mkdir(join(dir, "main"));
  await writeFile(join(dir, "main/0.log"), "");
  await symlink(join(dir, "main/0.log"), join(dir, `web_default_main-${id}.log`));
  await clock.advance(1);
  await collectContainers({
    ...{ runtime, clock, log: discardLogger, containerLogsDir: dir, maxPerContainer: 1, maxTotal: -1, minAgeMs: 0 },
    isKnown: () => false,
    allSourcesSynced: () => true,
  });
  assert.deepEqual([await readdir(dir), await readdir(join(dir, "main"))], [["main"], []]);
});

test("an image removed and pulled again before the next check counts as new", async () => {
  const { clock, runtime, gc, disk, removed } = collecting(50_000);
  runtime.addImage("a", { sizeBytes: 9_000 });
  await gc.collect();
  await clock.advance(60_000);
  disk.availableBytes = 12_000;
  await gc.collect();
  assert.deepEqual(removed(), ["a"]);
  runtime.addImage("a", { sizeBytes: 9_000 });
  await assert.rejects(gc.collect(), /freed 0 bytes/);
});

test("unused images are removed in least recently used order, pinned ones never", async () => {
  const { clock, runtime, gc, disk, removed } = collecting(50_000);
  for (const name of ["pinned", "used", "never"]) runtime.addImage(name, { sizeBytes: 9_000 });
  const { listImages } = runtime;
  runtime.listImages = async () => (await listImages()).map((image) => ({ ...image, pinned: image.id.endsWith("pinned") }));
  const sandbox = await runtime.runPodSandbox({ metadata: { name: "p" } }, "");
  const id = await runtime.createContainer(sandbox, { metadata: { name: "c" }, image: { image: "sha256:used" } }, {});
  await clock.advance(1_000);
  await gc.collect();
  await runtime.removeContainer(id);
  await gc.collect();
  await clock.advance(60_000);
  disk.availableBytes = 12_000;
  await gc.collect();
  assert.deepEqual(removed(), ["never"]);
  await gc.collect();
  assert.deepEqual(removed(), ["never", "used"]);
  await assert.rejects(gc.collect(), /freed 0 bytes/);
});

test("a high threshold of 100 % disables image removal; a disk without a size is reported", async () => {
  const off = collecting(0, { highThresholdPercent: 100, minAgeMs: 0 });
  off.runtime.addImage("a");
  await off.gc.collect();
  assert.deepEqual([off.removed(), off.reported], [[], []]);
  const young = collecting(0, { highThresholdPercent: 100 });
  young.runtime.addImage("a");
  await young.gc.collect();
  await young.clock.advance(60_000);
  await young.gc.removeUnused();
  assert.deepEqual(young.removed(), ["a"], "images grow old all the same, for when the disk is short");
  const sizeless = collecting(0);
  sizeless.disk.capacityBytes = 0;
  await assert.rejects(sizeless.gc.collect(), { message: "invalid capacity 0 on image filesystem" });
  assert.deepEqual(sizeless.reported, ["InvalidDiskCapacity"]);
});

test("beyond the total every container keeps the same number of exited instances, at least one, before the oldest are removed", async () => {
  const of = (runtime: { containers: Map<string, { config: { labels?: Record<string, string> } }> }): string[] =>
    [...runtime.containers.values()].map(({ config }) => config.labels?.[labelNames.podUid] ?? "");
  const { runtime, collect } = await ended(["p", "a"], ["q", "a"], ["q", "a"], ["q", "a"], ["q", "a"]);
  await collect(["p", "q"], { maxPerContainer: -1, maxTotal: 4 });
  assert.deepEqual(of(runtime), ["p", "q", "q"]);
  const many = await ended(["p", "a"], ["q", "a"], ["q", "a"], ["r", "a"]);
  await many.collect(["p", "q", "r"], { maxPerContainer: -1, maxTotal: 2 });
  assert.deepEqual(of(many.runtime), ["q", "r"]);
  const uneven = await ended(["p", "a"], ["q", "a"], ["q", "a"], ["q", "a"]);
  await uneven.collect(["p", "q"], { maxPerContainer: -1, maxTotal: 3 });
  assert.deepEqual(of(uneven.runtime), ["p", "q"], "three for two are one for each");
  await uneven.collect(["p", "q"], { maxPerContainer: -1, maxTotal: 0 });
  assert.deepEqual(of(uneven.runtime), []);
  await uneven.collect(["p", "q"], { maxPerContainer: -1, maxTotal: 0 });
});

test("an exited container is removed as soon as it has the minimum age", async () => {
  const { clock, runtime, collect } = await ended(["gone", "a"]);
  const [{ createdAt } = { createdAt: 0 }] = await runtime.listContainers();
  const ageMs = clock.now() - createdAt / 1e6;
  await collect([], { minAgeMs: ageMs + 1 });
  assert.equal(runtime.containers.size, 1);
  await collect([], { minAgeMs: ageMs });
  assert.equal(runtime.containers.size, 0);
});

test("exactly as many exited instances as may be kept in total are all kept, however they are distributed", async () => {
  const { runtime, collect } = await ended(["p", "a"], ["q", "a"], ["q", "a"], ["q", "a"]);
  await collect(["p", "q"], { maxPerContainer: -1, maxTotal: 4 });
  assert.equal(runtime.containers.size, 4);
});

test("containers of pods that are gone do not count towards the total of those that are kept", async () => {
  const { runtime, collect } = await ended(["p", "a"], ["q", "a"], ["gone", "a"], ["gone", "b"]);
  await collect(["p", "q"], { maxTotal: 2 });
  assert.deepEqual(
    [...runtime.containers.values()].map(({ config }) => config.labels?.[labelNames.podUid]),
    ["p", "q"],
  );
});

test("foreign sandboxes, ready ones and the newest of an existing pod are kept", async () => {
  const { runtime, collect } = await ended(["p", "a"], ["p", "a"]);
  const foreign = await runtime.runPodSandbox({ metadata: { name: "foreign" } }, "");
  const id = await runtime.createContainer(foreign, { metadata: { name: "c" } }, {});
  await runtime.startContainer(id);
  runtime.exit(id, 0);
  const ready = await runtime.runPodSandbox({ metadata: { name: "r" }, labels: { [labelNames.podUid]: "r" } }, "");
  await runtime.stopPodSandbox(foreign);
  const [first, second] = [...runtime.sandboxes.keys()];
  const { listPodSandboxes } = runtime;
  runtime.listPodSandboxes = async (filter) => (await listPodSandboxes(filter)).toReversed();
  const { stopPodSandbox } = runtime;
  const stopped: string[] = [];
  runtime.stopPodSandbox = async (sandbox) => {
    stopped.push(sandbox);
    await stopPodSandbox(sandbox);
  };
  await collect(["p"], { maxPerContainer: 0 });
  assert.deepEqual([...runtime.sandboxes.keys()], [second, foreign, ready]);
  assert.deepEqual(stopped, [first], "its network is released before it is removed");
  assert.ok(runtime.containers.has(id) && first !== second);
});
