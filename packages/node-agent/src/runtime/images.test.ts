import assert from "node:assert/strict";
import { test } from "node:test";
import type { Secret } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { aContainer, aNodePod } from "../testing/builders.ts";
import { newFakeRuntime } from "../testing/fake-runtime.ts";
import { type ContainerGcOptions, collectContainers } from "./container-gc.ts";
import { fitsImage, loginsFor, loginsOf, parseDockerConfig } from "./image-credentials.ts";
import { newImageGc } from "./image-gc.ts";
import { ImagePuller } from "./images.ts";
import { containerHash } from "./labels.ts";
import { type ContainerRuntime, containerState, RuntimeError } from "./runtime.ts";

test("credentials are matched by host and path, the most specific first", () => {
  const config = JSON.stringify({
    auths: {
      "https://registry.example/v1/": { auth: Buffer.from("u:p:w").toString("base64") },
      "https://second.example/v2/": { username: "second", password: "x" },
      "http://third.example/": { username: "third", password: "x" },
      "registry.example/team": { username: "team", password: "x" },
      "*.wild.example": { username: "w", password: "w" },
      "https://index.docker.io/v1/": { username: "hub", password: "h" },
    },
  });
  const secret: Secret = {
    metadata: {},
    type: "kubernetes.io/dockerconfigjson",
    data: { ".dockerconfigjson": Buffer.from(config).toString("base64") },
  };
  const logins = loginsOf([secret]);
  const users = (image: string): unknown[] => loginsFor(image, logins).map(({ username }) => username);
  assert.deepEqual(users("registry.example/team/app"), ["team", "u"]);
  assert.deepEqual(users("registry.example/teamwork/app"), ["u"]);
  assert.deepEqual(users("registry.example/team"), ["team", "u"]);
  assert.deepEqual([users("second.example/x"), users("third.example/x")], [["second"], ["third"]]);
  assert.deepEqual(users("a.wild.example/x"), ["w"]);
  assert.deepEqual(users("a.b.wild.example/x"), []);
  assert.deepEqual(users("busybox"), ["hub"]);
  for (const image of ["", "registry.example/team/App", "registry.example/team:x:y"]) assert.deepEqual(users(image), [], image);
  assert.equal(loginsFor("registry.example/x", logins)[0]?.password, "p:w");
  assert.deepEqual([parseDockerConfig("no json"), parseDockerConfig("[]"), parseDockerConfig('{"auths": 1}')], [[], [], []]);
});

test("an entry's own user name and password are used before those of its auth field; it may have an identity token instead", () => {
  const auth = Buffer.from("a:b").toString("base64");
  const of = (entry: object) => parseDockerConfig(JSON.stringify({ auths: { "registry.example": entry } }))[0]?.auth;
  assert.deepEqual(of({ auth }), { username: "a", password: "b", identityToken: "" });
  assert.deepEqual(of({ auth, username: "u", password: "p" }), { username: "u", password: "p", identityToken: "" });
  assert.deepEqual(of({ identitytoken: "t" }), { username: "", password: "", identityToken: "t" });
});

test("an entry that is no object is ignored, and the next one is used", () => {
  const text = JSON.stringify({ auths: { "a.test": "x", "b.test": { username: "u", password: "p" } } });
  assert.deepEqual(
    parseDockerConfig(text).map(({ pattern }) => pattern),
    ["b.test"],
  );
});

test("pull secrets of the older type have their entries at the top level, and a type says which field counts", () => {
  const config = Buffer.from(JSON.stringify({ "registry.example": { username: "old" } })).toString("base64");
  const of = (type: string) =>
    loginsOf([{ metadata: {}, type, data: { ".dockercfg": config } }]).map(({ auth }) => auth.username);
  assert.deepEqual(of("kubernetes.io/dockercfg"), ["old"]);
  assert.deepEqual(of("kubernetes.io/dockerconfigjson"), []);
});

test("the parts around a wildcard must not overlap in the name", () => {
  const fits = (pattern: string, host: string) => fitsImage(`${pattern}.example`, `${host}.example/app`);
  assert.deepEqual(
    [fits("ab*ba", "aba"), fits("ab*ba", "abba"), fits("a*b*c", "axbyc"), fits("a*b*c", "acb")],
    [false, true, true, false],
  );
});

const pod = aNodePod();
const silent = (): void => undefined;

for (const { policy, present, want } of [
  { policy: "IfNotPresent", present: true, want: [] },
  { policy: "IfNotPresent", present: false, want: ["PullImage registry.test/a:1"] },
  { policy: "Always", present: true, want: ["PullImage registry.test/a:1"] },
  { policy: "Never", present: true, want: [] },
]) {
  test(`policy ${policy} with the image ${present ? "present" : "missing"} pulls ${want.length === 0 ? "nothing" : "it"}`, async () => {
    const clock = newFakeClock();
    const runtime = newFakeRuntime(clock);
    runtime.registry.add("registry.test/a:1");
    if (present) runtime.addImage("registry.test/a:1");
    const puller = new ImagePuller({ runtime, clock, serialize: true, qps: 0, burst: 0 });
    const { imageRef } = await puller.ensure(
      pod,
      aContainer({ image: "registry.test/a:1", imagePullPolicy: policy }),
      [],
      {},
      silent,
    );
    assert.equal(imageRef, "sha256:registry.test/a:1");
    assert.deepEqual(runtime.calls, want);
  });
}

test("a pull is reported by an event, and a failing ImageStatus is reported as ImageInspectError", async () => {
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  runtime.registry.add("registry.test/a:1");
  const puller = new ImagePuller({ runtime, clock, serialize: true, qps: 0, burst: 0 });
  const events: string[] = [];
  const ensure = (image: string): Promise<unknown> =>
    puller.ensure(pod, aContainer({ image }), [], {}, (...event) => void events.push(event.join(" ")));
  await ensure("registry.test/a:1");
  assert.deepEqual(events.splice(0), [
    'Normal Pulling Pulling image "registry.test/a:1"',
    'Normal Pulled Successfully pulled image "registry.test/a:1" in 0s',
  ]);
  runtime.imageStatus = () => Promise.reject(new Error("no such device"));
  await assert.rejects(ensure("registry.test/b:1"), { reason: "ImageInspectError" });
  assert.deepEqual(events, ['Warning InspectFailed Failed to inspect image "registry.test/b:1": no such device']);
});

test("an image without a tag is pulled as latest, and events name it as the pod does", async () => {
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  runtime.registry.add("registry.test/a:latest");
  const puller = new ImagePuller({ runtime, clock, serialize: true, qps: 0, burst: 0 });
  const events: string[] = [];
  const report = (...event: string[]): void => void events.push(event.join(" "));
  const { imageRef } = await puller.ensure(pod, aContainer({ image: "registry.test/a" }), [], {}, report);
  assert.equal(imageRef, "sha256:registry.test/a:latest");
  assert.deepEqual(runtime.calls, ["PullImage registry.test/a:latest"]);
  assert.equal(events[0], 'Normal Pulling Pulling image "registry.test/a"');
});

test("serialized pulls wait for each other, and a failure does not hold up the next", async () => {
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  for (const name of ["a", "b"]) runtime.registry.add(`registry.test/${name}:1`);
  const pull = runtime.pullImage;
  let inside = 0;
  let most = 0;
  runtime.pullImage = async (...args) => {
    most = Math.max(most, ++inside);
    await clock.sleep(10);
    inside--;
    return pull(...args);
  };
  const puller = new ImagePuller({ runtime, clock, serialize: true, qps: 0, burst: 0 });
  const all = Promise.allSettled(
    ["a", "none", "b"].map((name) => puller.ensure(pod, aContainer({ image: `registry.test/${name}:1` }), [], {}, silent)),
  );
  await clock.advance(100);
  assert.deepEqual([(await all).map(({ status }) => status), most], [["fulfilled", "rejected", "fulfilled"], 1]);
});

test("pulls are limited by rate", async () => {
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  for (const name of ["a", "b"]) runtime.registry.add(`registry.test/${name}:1`);
  const puller = new ImagePuller({ runtime, clock, serialize: false, qps: 1, burst: 1 });
  const pull = (name: string): Promise<unknown> =>
    puller.ensure(pod, aContainer({ image: `registry.test/${name}:1` }), [], {}, silent);
  await pull("a");
  await assert.rejects(pull("b"), { reason: "ErrImagePull", message: "pull QPS exceeded" });
  await clock.advance(3_600_000);
  await pull("b");
  await assert.rejects(pull("c"), { message: "pull QPS exceeded" }, "a quiet hour leaves no more than the burst");
});

test("a full disk removes images by last use, never those in use or new ones", async () => {
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  for (const name of ["old", "newer", "used", "pause"]) runtime.addImage(name, { sizeBytes: 100 });
  runtime.imageFilesystems = async () => [{ timestamp: 0, fsId: { mountpoint: "/images" }, usedBytes: null, inodesUsed: null }];
  const sandbox = await runtime.runPodSandbox({ metadata: { name: "p" } }, "");
  const use = async (image: string): Promise<string> =>
    runtime.createContainer(sandbox, { metadata: { name: "c" }, image: { image } }, {});
  await use("sha256:used");
  const newer = await use("sha256:newer");
  const events: string[] = [];
  let available = 500;
  const gc = newImageGc({
    runtime,
    clock,
    log: discardLogger,
    highThresholdPercent: 85,
    lowThresholdPercent: 80,
    minAgeMs: 120_000,
    sandboxImage: "pause",
    event: (_, reason) => void events.push(reason),
    filesystem: async () => ({ capacityBytes: 1000, availableBytes: available }),
  });
  const { listImages } = runtime;
  runtime.listImages = async () => [];
  await gc.collect(); // images of the first list would count as old
  runtime.listImages = listImages;
  await gc.collect();
  clock.setOn(3_600_000); // a jump of the wall clock does not age images
  await runtime.removeContainer(newer);
  await clock.advance(60_000);
  available = 100;
  await assert.rejects(gc.collect(), {
    message: "failed to garbage collect required amount of images. Wanted to free 100 bytes, but freed 0 bytes",
  });
  assert.deepEqual(
    runtime.calls.filter((call) => call.startsWith("RemoveImage")),
    [],
    "young images stay",
  );
  assert.deepEqual(events.splice(0), ["FreeDiskSpaceFailed"]);
  await clock.advance(60_000);
  await gc.collect();
  assert.deepEqual(
    runtime.calls.filter((call) => call.startsWith("RemoveImage")),
    ["RemoveImage sha256:old"],
    "100 of 100 wanted bytes are free",
  );
  available = 0;
  await assert.rejects(gc.collect(), /Wanted to free 200 bytes, but freed 100 bytes$/);
  assert.deepEqual(
    (await runtime.listImages()).map(({ repoTags }) => repoTags[0]),
    ["used", "pause"],
  );
  assert.deepEqual(events, ["FreeDiskSpaceFailed"]);
});

const oneOfEach = (runtime: ContainerRuntime, clock: Clock, synced = true): ContainerGcOptions => ({
  runtime,
  clock,
  log: discardLogger,
  containerLogsDir: "/nonexistent",
  maxPerContainer: 1,
  maxTotal: -1,
  minAgeMs: 0,
  isKnown: (uid) => uid === "known",
  allSourcesSynced: () => synced,
});

test("one exited instance of each container is kept for its logs, and none of deleted pods", async () => {
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  runtime.addImage("i");
  const dead = async (uid: string, name: string): Promise<void> => {
    const labels = { "io.kubernetes.pod.uid": uid, "io.kubernetes.container.name": name, "io.kubernetes.pod.name": uid };
    const sandbox =
      (await runtime.listPodSandboxes({ labels: { "io.kubernetes.pod.uid": uid } }))[0]?.id ??
      (await runtime.runPodSandbox({ metadata: { name: uid }, labels }, ""));
    const id = await runtime.createContainer(sandbox, { metadata: { name }, image: { image: "i" }, labels }, {});
    await runtime.startContainer(id);
    runtime.exit(id, 1);
  };
  for (const name of ["a", "a", "a", "b"]) await dead("known", name);
  await dead("gone", "a");
  for (const sandbox of runtime.sandboxes.values()) await runtime.stopPodSandbox(sandbox.id);
  await clock.advance(1);
  const gc = (synced: boolean): Promise<void> => collectContainers(oneOfEach(runtime, clock, synced));
  await gc(false);
  assert.equal(runtime.containers.size, 3, "no pod is removed before all sources have reported");
  await gc(true);
  assert.deepEqual([...runtime.containers.values()].map(({ config }) => config.metadata?.name).sort(), ["a", "b"]);
  assert.ok([...runtime.containers.values()].every(({ state }) => state === containerState.exited));
  assert.equal(runtime.sandboxes.size, 1, "the sandbox of the pod that is gone went with it");
});

test("before all sources are ready the only sandbox of an unknown pod is kept", async () => {
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  const labels = { "io.kubernetes.pod.uid": "gone" };
  await runtime.stopPodSandbox(await runtime.runPodSandbox({ metadata: { name: "p" }, labels }, ""));
  for (const isSynced of [false, true]) {
    await collectContainers(oneOfEach(runtime, clock, isSynced));
    assert.equal(runtime.sandboxes.size, isSynced ? 0 : 1);
  }
});

test("a created container that never started is removed like an exited one after five minutes", async () => {
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  const labels = { "io.kubernetes.pod.uid": "known", "io.kubernetes.container.name": "a" };
  const sandbox = await runtime.runPodSandbox({ metadata: { name: "p" }, labels }, "");
  for (const attempt of [0, 1]) await runtime.createContainer(sandbox, { metadata: { name: "a", attempt }, labels }, {});
  const gc = (minAgeMs = 0): Promise<void> => collectContainers({ ...oneOfEach(runtime, clock), minAgeMs });
  await clock.advance(299_999);
  await gc();
  assert.equal(runtime.containers.size, 2, "both may be about to begin");
  await clock.advance(2);
  await gc(300_002);
  assert.equal(runtime.containers.size, 2, "--minimum-container-ttl-duration holds for them, too");
  await gc();
  assert.deepEqual(
    [...runtime.containers.values()].map(({ config }) => config.metadata?.attempt),
    [1],
  );
});

test("a container's hash depends on its specification, not on the order of its fields", () => {
  const one = aContainer({ image: "a", command: ["x"] });
  assert.equal(containerHash(one), containerHash({ command: ["x"], resources: {}, image: "a", name: "main" }));
  assert.notEqual(containerHash(one), containerHash({ ...one, image: "b" }));
  assert.match(containerHash(one), /^[0-9a-f]{1,8}$/);
});

test("a container's hash is upstream's, so that containers of an agent of upstream keep running", () => {
  const args = ["/bin/sh", "-c", "echo abc"];
  const one = { name: "test_container", image: "foo/image:v1", args, ports: [{ containerPort: 8001 }] };
  assert.equal(containerHash(one), "3c42280f", "as in TestHashContainer of v1.23");
  assert.equal(containerHash({ name: "a", command: ["<>&\u2028\u2029"] }), "bb5f4e40", "of the JSON that Go writes");
});

test("a pull that all credentials fail names each failure", async () => {
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  const tried: (string | undefined)[] = [];
  runtime.pullImage = async (_, login) => {
    tried.push(login?.username);
    throw new RuntimeError("Unknown", `denied for ${login?.username}`);
  };
  const auths = { "registry.test": { username: "all", password: "p" }, "registry.test/a": { username: "own", password: "p" } };
  const secret: Secret = {
    metadata: {},
    type: "kubernetes.io/dockerconfigjson",
    data: { ".dockerconfigjson": Buffer.from(JSON.stringify({ auths })).toString("base64") },
  };
  const puller = new ImagePuller({ runtime, clock, serialize: false, qps: 0, burst: 0 });
  await assert.rejects(puller.ensure(pod, aContainer({ image: "registry.test/a:1" }), [secret], {}, silent), {
    reason: "ErrImagePull",
    message: "[rpc error: code = Unknown desc = denied for own, rpc error: code = Unknown desc = denied for all]",
  });
  assert.deepEqual(tried, ["own", "all"]);
  runtime.pullImage = () => Promise.reject(new RuntimeError("Unknown", "denied"));
  await clock.advance(10_000);
  await assert.rejects(puller.ensure(pod, aContainer({ image: "registry.test/a:1" }), [secret], {}, silent), {
    message: "rpc error: code = Unknown desc = denied",
  });
});
