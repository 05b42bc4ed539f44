import assert from "node:assert/strict";
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { runFileSource } from "./file.ts";
import { newPodSources } from "./merge.ts";

const manifest = (image: string): string =>
  JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata: { name: "web" }, spec: { containers: [{ name: "c", image }] } });
const frequencyMs = 20_000;

/** Follows a directory. */
async function following(t: TestContext) {
  const path = await mkdtemp(join(tmpdir(), "cox-manifests-"));
  t.after(() => rm(path, { recursive: true, force: true }));
  const clock = newFakeClock();
  const did: string[] = [];
  const image = ({ spec }: { spec: { containers: { image?: string }[] } }) => spec.containers[0]?.image;
  const sources = newPodSources(["file"], {
    added: (pod) => void did.push(`added ${image(pod)}`),
    updated: (pod) => void did.push(`updated ${image(pod)}`),
    removed: (pod) => void did.push(`removed ${image(pod)}`),
  });
  let failures = 0;
  const log = { ...discardLogger, error: () => void failures++ };
  const stop = new AbortController();
  const running = runFileSource({ path, frequencyMs, nodeName: "n1", sources, clock, turns: new Turns(), log }, stop.signal);
  t.after(async () => {
    stop.abort();
    await running;
  });
  return {
    clock,
    did,
    failures: () => failures,
    write: (text: string) => writeFile(join(path, "web.yaml"), text),
    remove: () => rm(join(path, "web.yaml")),
    path,
  };
}

test("a file's pod is added, changed and removed with the file", async (t) => {
  const { did, write, remove } = await following(t);
  await write(manifest("i:1"));
  await waitFor(() => did.includes("added i:1"));
  await write(manifest("i:2"));
  await waitFor(() => did.includes("added i:2"));
  await remove();
  await waitFor(() => did.includes("removed i:2"));
});

test("a partially written file keeps its pod, a file that stays invalid removes it", async (t) => {
  const { clock, did, failures, write } = await following(t);
  await write(manifest("i:1"));
  await waitFor(() => did.includes("added i:1"));
  did.length = 0;
  const before = failures();
  await write(manifest("i:1").slice(0, 40));
  await waitFor(() => failures() > before);
  assert.deepEqual([...did], []);
  await waitFor(() => {
    void clock.advance(frequencyMs);
    return did.length > 0;
  });
  assert.deepEqual([...did], ["removed i:1"]);
  await write(manifest("i:1"));
  await waitFor(() => did.includes("added i:1"));
});

test("a file that is listed, but no longer there when it is read, removes its pod at once", async (t) => {
  const { did, write, path } = await following(t);
  await write(manifest("i:1"));
  await waitFor(() => did.includes("added i:1"));
  await symlink(join(path, "nowhere"), join(path, ".link"));
  await rename(join(path, ".link"), join(path, "web.yaml"));
  await waitFor(() => did.includes("removed i:1"), { what: "the removal, without another look" });
});

test("a partially written manifest does not bring back a removed pod", async (t) => {
  const { did, failures, write, remove } = await following(t);
  await write(manifest("i:1"));
  await waitFor(() => did.includes("added i:1"));
  await remove();
  await waitFor(() => did.includes("removed i:1"));
  did.length = 0;
  const before = failures();
  await write(manifest("i:1").slice(0, 40));
  await waitFor(() => failures() > before);
  await write(manifest("i:2"));
  await waitFor(() => did.length > 0);
  assert.deepEqual(did, ["added i:2"]);
});

/** Follows a path with a polling interval that the test controls. */
async function polling(t: TestContext, path: string) {
  const clock = newFakeClock();
  const reported: string[] = [];
  const sources = newPodSources(["file"], {
    added: ({ metadata }) => void reported.push(`added ${metadata.name}`),
    updated: ({ metadata }) => void reported.push(`updated ${metadata.name}`),
    removed: ({ metadata }) => void reported.push(`removed ${metadata.name}`),
  });
  const failed: string[] = [];
  const log = { ...discardLogger, error: (message: string) => void failed.push(message) };
  const stop = new AbortController();
  const running = runFileSource({ path, frequencyMs, nodeName: "n1", sources, clock, turns: new Turns(), log }, stop.signal);
  t.after(async () => {
    stop.abort();
    await running;
  });
  await waitFor(() => clock.waiting > 0);
  const look = async (condition: () => boolean) =>
    waitFor(() => {
      void clock.advance(frequencyMs);
      return condition();
    });
  return { reported, failed, sources, look };
}

const named = (name: string): string => manifest("i:1").replace('"web"', JSON.stringify(name));

test("each file of a folder is a pod, in order; hidden files and folders are ignored, and an invalid file does not affect others", async (t) => {
  const path = await mkdtemp(join(tmpdir(), "cox-manifests-"));
  t.after(() => rm(path, { recursive: true, force: true }));
  await mkdir(join(path, "a"));
  for (const name of ["c", "b", ".hidden"]) await writeFile(join(path, name), named(`from-${name}`.replace(".", "")));
  await writeFile(join(path, "bad"), "kind: [");
  const { reported, failed, sources } = await polling(t, path);
  assert.deepEqual(reported, ["added from-b-n1", "added from-c-n1"]);
  assert.deepEqual(failed, ["Can't process manifest file"]);
  assert.equal(sources.allSynced(), true);
});

test("the folder is watched by one watcher at a time, and by none after the agent has stopped", async (t) => {
  const watchers = () => process.getActiveResourcesInfo().filter((kind) => kind === "FSEventWrap").length;
  await waitFor(() => watchers() === 0, { what: "the end of those of earlier tests" });
  const path = await mkdtemp(join(tmpdir(), "cox-manifests-"));
  t.after(() => rm(path, { recursive: true, force: true }));
  const clock = newFakeClock();
  const sources = newPodSources(["file"], { added() {}, updated() {}, removed() {} });
  const stop = new AbortController();
  const running = runFileSource(
    { path, frequencyMs, nodeName: "n1", sources, clock, turns: new Turns(), log: discardLogger },
    stop.signal,
  );
  for (let look = 0; look < 3; look++) {
    await waitFor(() => clock.waiting > 0);
    assert.equal(watchers(), 1);
    await clock.advance(frequencyMs);
  }
  stop.abort();
  await running;
  await waitFor(() => watchers() === 0);
});

test("a missing path has no pods; removing a path removes its pods", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "cox-manifests-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const path = join(dir, "web.yaml");
  const { reported, failed, sources, look } = await polling(t, path);
  assert.deepEqual([sources.allSynced(), sources.list(), failed], [true, [], []]);
  await writeFile(join(dir, "new"), named("web"));
  await rename(join(dir, "new"), path);
  await look(() => reported.includes("added web-n1"));
  const [first] = sources.list();
  await rm(path);
  await look(() => reported.includes("removed web-n1"));
  await writeFile(join(dir, "new"), named("web"));
  await rename(join(dir, "new"), path);
  await look(() => sources.list().length > 0);
  assert.notEqual(sources.list()[0], first, "the same manifest anew is read anew");
});

test("a path that is a file keeps its last pod while the file is invalid, and when it is something else", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "cox-manifests-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const path = join(dir, "web.yaml");
  await writeFile(path, named("web"));
  const { reported, failed, sources, look } = await polling(t, path);
  const next = join(dir, "next");
  for (const make of [() => writeFile(next, "kind: ["), () => symlink("/dev/null", next)]) {
    await make();
    await rename(next, path);
    failed.length = 0;
    let looks = 0;
    await look(() => failed.length > 2 && looks++ > 2);
    assert.deepEqual([reported, sources.list().length], [["added web-n1"], 1]);
    assert.deepEqual([...new Set(failed)], ["Unable to read config path"]);
  }
});

test("an unreadable path keeps its last pods", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "cox-manifests-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const path = join(dir, "pods", "web.yaml");
  await mkdir(join(dir, "pods"));
  await writeFile(path, named("web"));
  const { reported, failed, sources, look } = await polling(t, path);
  assert.deepEqual(reported, ["added web-n1"]);
  await rename(join(dir, "pods"), join(dir, "away"));
  await writeFile(join(dir, "pods"), "a file where the folder was");
  await look(() => {
    assert.equal(sources.list().length, 1);
    return failed.includes("Unable to read config path");
  });
});
