import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client } from "@coxswain/apimachinery/client/client";
import { forbidden, notFound, serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newApiObjects } from "./api-objects.ts";

function reading() {
  const clock = newFakeClock();
  const answer = { data: "1", error: undefined as Error | undefined, requested: 0 };
  const client = {
    get: async ({ resource }: { resource: string }, { namespace, name }: { namespace: string; name: string }) => {
      answer.requested++;
      if (answer.error !== undefined) throw answer.error;
      return { metadata: { name }, data: { key: answer.data, of: `${resource} ${namespace}/${name}` } };
    },
  } as unknown as Client;
  const objects = newApiObjects(client, clock);
  return { clock, answer, objects, read: async () => (await objects.configMap("default", "cm")).data?.key };
}

test("concurrent reads of an object share one request, and later reads see a change", async () => {
  const { clock, answer, read } = reading();
  assert.deepEqual(await Promise.all([read(), read()]), ["1", "1"]);
  assert.equal(answer.requested, 1);
  answer.data = "2";
  await clock.advance(5_000);
  assert.equal(await read(), "2");
});

for (const { what, error } of [
  { what: "is not there", error: new Error("connect ECONNREFUSED") },
  { what: "has no time", error: serviceUnavailable("etcd is away") },
]) {
  test(`the last read object is returned while the API server ${what}, and no longer`, async () => {
    const { clock, answer, read } = reading();
    answer.error = error;
    await assert.rejects(read(), error, "nothing was read yet");
    answer.error = undefined;
    await read();
    await clock.advance(5_000);
    answer.error = error;
    assert.deepEqual([await read(), await read()], ["1", "1"]);
    answer.error = undefined;
    answer.data = "2";
    assert.equal(await read(), "2", "a failure is not kept");
  });
}

test("objects of one name in two namespaces, or of two kinds, are read separately", async () => {
  const { objects } = reading();
  const of = async ({ data = {} }: { data?: Readonly<Record<string, string>> }) => data["of"];
  assert.deepEqual(
    await Promise.all([
      objects.configMap("a", "x").then(of),
      objects.configMap("b", "x").then(of),
      objects.secret("a", "x").then(of),
    ]),
    ["configmaps a/x", "configmaps b/x", "secrets a/x"],
  );
});

test("an object is kept for five seconds, also when more objects than are kept were read since", async () => {
  const { clock, answer, objects, read } = reading();
  await read();
  await clock.advance(4_999);
  for (let i = 0; i < 1_001; i++) await objects.configMap("default", `cm-${i}`);
  answer.requested = 0;
  answer.data = "2";
  assert.deepEqual([await read(), answer.requested], ["1", 0]);
  await clock.advance(1);
  assert.deepEqual([await read(), answer.requested], ["2", 1]);
});

for (const { what, unusedMs, isForgotten } of [
  { what: "not read for ten minutes are forgotten", unusedMs: 600_000, isForgotten: true },
  { what: "read within ten minutes are returned while the API server is away", unusedMs: 599_999, isForgotten: false },
]) {
  test(`above a thousand objects, those ${what}`, async () => {
    const { clock, answer, objects, read } = reading();
    const other = async (i: number) => (await objects.configMap("default", `cm-${i}`)).data?.["key"];
    await read();
    for (let i = 0; i < 1_000; i++) await other(i);
    await clock.advance(unusedMs - 1);
    await read();
    await clock.advance(1);
    answer.error = new Error("away");
    await assert.rejects(objects.configMap("default", "another"), answer.error);
    assert.equal(await read(), "1", "it was read last");
    assert.equal(await other(1), "1", "a thousand are always kept");
    if (isForgotten) await assert.rejects(other(0), answer.error);
    else assert.equal(await other(0), "1");
  });
}

test("an object that may no longer be read is not returned from the cache, and the error says so", async () => {
  const { clock, answer, read } = reading();
  await read();
  await clock.advance(5_000);
  answer.error = forbidden({ group: "", resource: "configmaps" }, "cm", "not of this node");
  await assert.rejects(read(), { code: 403 });
});

test("a deleted object is not returned from the cache", async () => {
  const { clock, answer, read } = reading();
  await read();
  await clock.advance(5_000);
  answer.error = notFound({ group: "", resource: "configmaps" }, "cm");
  await assert.rejects(read(), /configmap "cm" not found/);
  answer.error = new Error("connect ECONNREFUSED");
  await assert.rejects(read(), /ECONNREFUSED/);
});

test("all objects above a thousand that were not read for ten minutes are forgotten at once", async () => {
  const { clock, answer, objects } = reading();
  const of = async (i: number) => (await objects.configMap("default", `cm-${i}`)).data?.["key"];
  for (let i = 0; i < 1_005; i++) await of(i);
  await clock.advance(600_000);
  answer.error = new Error("away");
  await assert.rejects(objects.configMap("default", "another"), answer.error);
  assert.equal(await of(5), "1", "a thousand are kept");
  await assert.rejects(of(4), answer.error);
});
