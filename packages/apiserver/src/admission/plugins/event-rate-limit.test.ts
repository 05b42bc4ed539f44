import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import type { AdmissionAttributes } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";
import { eventRateLimit } from "./event-rate-limit.ts";

function limited(...limits: object[]) {
  const clock = newFakeClock();
  const plugin = eventRateLimit({ clock, configurationOf: () => ({ limits }) } as unknown as PluginContext);
  const write = async (more: object = {}, event: object = {}) => {
    const object = { source: { component: "kubelet", host: "n1" }, involvedObject: { kind: "Pod", name: "web" }, ...event };
    const attributes = {
      kind: { group: "", kind: "Event" },
      namespace: "a",
      user: { name: "joe" },
      dryRun: false,
      object,
      ...more,
    };
    try {
      await plugin.validate?.(attributes as unknown as AdmissionAttributes<never>);
      return "";
    } catch (err) {
      return (err as Error).message;
    }
  };
  return { clock, write };
}

for (const { type, same, other, key } of [
  { type: "Server", same: { namespace: "b", user: { name: "ann" } }, other: undefined, key: "" },
  { type: "Namespace", same: { user: { name: "ann" } }, other: { namespace: "b" }, key: "a" },
  { type: "User", same: { namespace: "b" }, other: { user: { name: "ann" } }, key: "joe" },
]) {
  test(`a limit by ${type} has its own bucket for each`, async () => {
    const { clock, write } = limited({ type, qps: 1, burst: 2 });
    assert.deepEqual([await write(), await write(same)], ["", ""]);
    const text = `Too many requests: limit reached on type ${type} for key ${key}`;
    assert.equal(await write(), text);
    if (other !== undefined) assert.equal(await write(other), "");
    await clock.advance(999);
    assert.equal(await write(), text);
    await clock.advance(1);
    assert.deepEqual([await write(), await write()], ["", text]);
    await clock.advance(60_000);
    assert.deepEqual([await write(), await write(), await write()], ["", "", text], "no more than the burst is saved up");
  });
}

test("a wall clock that is set forward fills no bucket", async () => {
  const { clock, write } = limited({ type: "Server", qps: 1, burst: 1 });
  assert.equal(await write(), "");
  clock.setOn(3_600_000);
  assert.notEqual(await write(), "");
});

test("the time of a refused event counts once", async () => {
  const { clock, write } = limited({ type: "Server", qps: 1, burst: 1 });
  assert.equal(await write(), "");
  const after = async (ms: number) => {
    await clock.advance(ms);
    return (await write()) === "";
  };
  assert.deepEqual([await after(600), await after(600), await after(300), await after(500)], [false, true, false, false]);
});

test("a limit by source and object distinguishes each part of both", async () => {
  const { write } = limited({ type: "SourceAndObject", qps: 1, burst: 1 });
  assert.equal(await write(), "");
  assert.match(await write({ namespace: "b", user: { name: "ann" } }), /SourceAndObject for key kubeletn1Podweb$/);
  for (const source of [
    { component: "x", host: "n1" },
    { component: "kubelet", host: "n2" },
  ])
    assert.equal(await write({}, { source }), "");
  for (const part of ["kind", "namespace", "name", "uid", "apiVersion"])
    assert.equal(await write({}, { involvedObject: { kind: "Pod", name: "web", [part]: `its ${part}` } }), "", part);
});

test("each of several limits counts every event, and the last that is reached is reported", async () => {
  const { write } = limited({ type: "Server", qps: 1, burst: 1 }, { type: "User", qps: 1, burst: 2 });
  assert.equal(await write(), "");
  assert.match(await write(), /type Server/);
  assert.match(await write(), /type User/);
  assert.match(await write({ user: { name: "ann" } }), /type Server/);
});

test("the least recently used entries are evicted when the cache is full", async () => {
  const { write } = limited({ type: "Namespace", qps: 1, burst: 1, cacheSize: 2 });
  for (const namespace of ["a", "b", "c"]) assert.equal(await write({ namespace }), "");
  assert.match(await write({ namespace: "c" }), /for key c/);
  assert.equal(await write({ namespace: "a" }), "");
});

test("the buckets of 4,096 keys are kept when no number is given", async () => {
  const { write } = limited({ type: "Namespace", qps: 1, burst: 1 });
  for (let i = 0; i <= 4096; i++) assert.equal(await write({ namespace: `n${i}` }), "");
  assert.match(await write({ namespace: "n1" }), /for key n1$/);
  assert.equal(await write({ namespace: "n0" }), "");
});

test("dry runs, other kinds and other groups are not counted", async () => {
  const { write } = limited({ type: "Server", qps: 1, burst: 1 });
  for (const more of [
    { dryRun: true },
    { kind: { group: "", kind: "Pod" } },
    { kind: { group: "events.k8s.io", kind: "Event" } },
  ])
    for (let i = 0; i < 2; i++) assert.equal(await write(more), "");
  assert.equal(await write(), "");
});

for (const { limits, want } of [
  { limits: [], want: /limits: Required value: limits must have at least one item/ },
  {
    limits: [{ type: "x", qps: 1, burst: 1 }],
    want: /limits\[0\]\.type: Unsupported value: "x".*"Namespace", "Server", "SourceAndObject", "User"/,
  },
  {
    limits: [
      { type: "User", qps: 1, burst: 1 },
      { type: "User", qps: 0, burst: 0, cacheSize: -1 },
    ],
    want: /limits\[1\]\.type: Duplicate value: "User", limits\[1\]\.qps: Invalid value: 0: must be positive, limits\[1\]\.burst: Invalid value: 0: must be positive, limits\[1\]\.cacheSize: Invalid value: -1: must not be negative/,
  },
]) {
  test(`limits ${JSON.stringify(limits)} are refused`, () => assert.throws(() => limited(...limits), want));
}
