import assert from "node:assert/strict";
import { test } from "node:test";
import type { NodeSamples, Sample } from "./samples.ts";
import { newUsageStore } from "./usage-store.ts";

const t0 = 1_000_000;
const sample = (seconds: number, cpuSeconds: number, memoryBytes = 100): Sample => ({
  at: t0 + seconds * 1000,
  cpuSeconds,
  memoryBytes,
});
const samples = (node: Sample | undefined, pods: Record<string, Record<string, Sample>> = {}): NodeSamples => ({
  node,
  pods: new Map(Object.entries(pods).map(([key, containers]) => [key, new Map(Object.entries(containers))])),
});

test("has no usage after one sample, and the average of the window after two", () => {
  const store = newUsageStore();
  store.put("n", samples(sample(0, 10), { "a/p": { main: sample(1, 1), side: sample(0, 2) } }));
  assert.equal(store.node("n"), undefined);
  assert.equal(store.pod("a/p"), undefined);
  store.put("n", samples(sample(20, 20, 300), { "a/p": { main: sample(16, 4), side: sample(15, 2) } }));
  assert.deepEqual(store.node("n"), { at: t0 + 20_000, windowMs: 20_000, cpuCores: 0.5, memoryBytes: 300 });
  const pod = store.pod("a/p");
  assert.equal(pod?.at, t0 + 15_000);
  assert.equal(pod?.windowMs, 15_000);
  assert.deepEqual([pod?.containers.get("main")?.cpuCores, pod?.containers.get("side")?.cpuCores], [0.2, 0]);
});

test("keeps the window when a kubelet repeats its sample", () => {
  const store = newUsageStore();
  for (const one of [sample(0, 0), sample(10, 5), sample(10, 5)]) store.put("n", samples(one));
  assert.equal(store.node("n")?.windowMs, 10_000);
});

test("measures anew when the clock of a node was set back, also containers that started later than it is now", () => {
  const store = newUsageStore();
  const at = (seconds: number, cpuSeconds: number) => {
    const started = { ...sample(seconds, cpuSeconds), startedAt: t0 - 90_000 };
    store.put("n", samples(sample(seconds, cpuSeconds), { "a/p": { main: started } }));
  };
  at(0, 0);
  at(15, 15);
  assert.equal(store.node("n")?.cpuCores, 1);
  at(-3_600, 22);
  assert.equal(store.node("n"), undefined, "one sample of the new time");
  assert.equal(store.pod("a/p"), undefined);
  at(-3_585, 29.5);
  assert.deepEqual(store.node("n"), { at: t0 - 3_585_000, windowMs: 15_000, cpuCores: 0.5, memoryBytes: 100 });
  assert.equal(store.pod("a/p")?.containers.get("main")?.cpuCores, 0.5);
  at(-3_570, 1);
  assert.equal(store.pod("a/p"), undefined, "restarted in the new time");
});

test("a young container has no usage since its start when the clock was set back", () => {
  const store = newUsageStore();
  const put = (seconds: number, cpu: number, startedAt: number) =>
    store.put("n", samples(undefined, { "a/p": { main: { ...sample(seconds, cpu), startedAt: t0 + startedAt * 1000 } } }));
  put(0, 1, -20);
  assert.equal(store.pod("a/p")?.containers.get("main")?.windowMs, 20_000);
  put(-3_600, 2, -3_620);
  assert.equal(store.pod("a/p"), undefined);
});

test("does not know a pod while one of its containers has one sample, nor after a restart", () => {
  const store = newUsageStore();
  store.put("n", samples(undefined, { "a/p": { main: sample(0, 5) } }));
  store.put("n", samples(undefined, { "a/p": { main: sample(10, 6), late: sample(10, 0) } }));
  assert.equal(store.pod("a/p"), undefined);
  store.put("n", samples(undefined, { "a/p": { main: sample(20, 1), late: sample(20, 1) } }));
  assert.equal(store.pod("a/p"), undefined);
  store.put("n", samples(undefined, { "a/p": { main: sample(30, 2), late: sample(30, 2) } }));
  assert.equal(store.pod("a/p")?.containers.size, 2);
});

test("knows a young container from its start on", () => {
  const store = newUsageStore();
  const started = (seconds: number, cpu: number): Sample => ({ ...sample(seconds, cpu), startedAt: t0 });
  store.put("n", samples(undefined, { "a/p": { main: started(5, 1) }, "a/q": { main: started(20, 10) } }));
  assert.equal(store.pod("a/p"), undefined);
  assert.deepEqual(store.pod("a/q")?.containers.get("main")?.cpuCores, 0.5);
});

test("forgets pods that are gone, nodes that do not answer, and nodes that are gone", () => {
  const store = newUsageStore();
  const both = (seconds: number) => samples(sample(seconds, seconds), { "a/p": { main: sample(seconds, seconds) } });
  store.put("n", both(0));
  store.put("n", both(10));
  store.put("m", samples(sample(0, 0)));
  store.put("m", samples(sample(10, 10)));
  assert.ok(store.pod("a/p"));
  store.put("n", samples(sample(20, 20)));
  assert.equal(store.pod("a/p"), undefined);
  assert.ok(store.node("n"));
  store.put("n", undefined);
  assert.equal(store.node("n"), undefined);
  store.keep(new Set(["n"]));
  assert.equal(store.node("m"), undefined);
});

test("finds a pod that moved to another node under the same name", () => {
  const store = newUsageStore();
  const at = (seconds: number) => samples(undefined, { "a/p": { main: sample(seconds, seconds) } });
  store.put("n", at(0));
  store.put("m", at(5));
  store.put("m", at(15));
  store.put("n", samples(undefined));
  assert.equal(store.pod("a/p")?.windowMs, 10_000);
});

test("a container has a usage since its start from 10 s on and until it is a minute old", () => {
  const known = (ageMs: number): boolean => {
    const store = newUsageStore();
    store.put("n", samples(undefined, { "a/p": { main: { ...sample(0, 1), startedAt: t0 - ageMs } } }));
    return store.pod("a/p") !== undefined;
  };
  assert.deepEqual([9_999, 10_000, 59_999, 60_000].map(known), [false, true, true, false]);
});

test("a container that was restarted has a usage since its start, also when it has used more since than before", () => {
  const store = newUsageStore();
  const started = (seconds: number, cpu: number, at: number): Sample => ({ ...sample(seconds, cpu), startedAt: t0 + at * 1000 });
  const put = (one: Sample) => store.put("n", samples(undefined, { "a/p": { main: one } }));
  put(started(0, 1, -3_600));
  put(started(30, 4, 10));
  assert.deepEqual(store.pod("a/p")?.containers.get("main"), {
    at: t0 + 30_000,
    windowMs: 20_000,
    cpuCores: 0.2,
    memoryBytes: 100,
  });
  put(started(45, 7, 10));
  assert.equal(store.pod("a/p")?.containers.get("main")?.windowMs, 15_000);
  put(started(60, 100, 55));
  assert.equal(store.pod("a/p"), undefined, "too young for a usage");
});

test("a pod that moved is known on its new node when the old one forgets it later", () => {
  const store = newUsageStore();
  const at = (seconds: number) => samples(undefined, { "a/p": { main: sample(seconds, seconds) } });
  store.put("n", at(0));
  store.put("m", at(5));
  store.put("n", samples(undefined));
  store.put("m", at(15));
  assert.equal(store.pod("a/p")?.windowMs, 10_000);
  store.put("n", undefined);
  assert.equal(store.pod("a/p")?.windowMs, 10_000);
});
