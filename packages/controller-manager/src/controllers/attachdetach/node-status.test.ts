import assert from "node:assert/strict";
import { test } from "node:test";
import { newNewest } from "@coxswain/apimachinery/informers/newest";
import { newSharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { notFound, serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { nodes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { aNode } from "@coxswain/apimachinery/testing/builders";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { newNodeStatusUpdater } from "./node-status.ts";

const { signal } = new AbortController();

async function start(t: { after(fn: () => void): void }) {
  const client = newFakeClient();
  client.put(nodes, aNode({ name: "a" }), aNode({ name: "b" }));
  const informer = newSharedInformer<Node>({ client, clock: newFakeClock(), log: discardLogger, ref: nodes });
  const known = newNewest(informer);
  const stop = new AbortController();
  t.after(() => stop.abort());
  void informer.run(stop.signal);
  await settle();
  const usable = new Map<string, string[]>([
    ["a", ["v1"]],
    ["b", ["v9"]],
  ]);
  const devices = new Map<string, string>();
  const report = newNodeStatusUpdater({
    client,
    known,
    usable: (node) => (usable.get(node) ?? []).map((name) => ({ name, devicePath: devices.get(name) ?? "" })),
    isManaged: (name) => name.startsWith("v"),
  });
  const listed = (node: string) => client.object<Node>(nodes, node)?.status?.volumesAttached?.map(({ name }) => name);
  return { client, report, usable, devices, listed };
}

test("the second write of a node waits for the first, and says what is true then; another node's does not wait", async (t) => {
  const { client, report, usable, listed } = await start(t);
  const held = Promise.withResolvers<undefined>();
  let first = true;
  client.react("patch", "nodes", ({ name }) => {
    if (name !== "a" || !first) return undefined;
    first = false;
    return held.promise.then(() => {
      const node = client.object<Node>(nodes, "a") as Node;
      client.put(nodes, { ...node, status: { ...node.status, volumesAttached: [{ name: "v1", devicePath: "" }] } });
      return client.object<Node>(nodes, "a");
    });
  });
  const one = report.write("a", signal);
  const two = report.write("a", signal);
  await report.write("b", signal);
  assert.deepEqual(listed("b"), ["v9"]);
  usable.set("a", ["v2", "v3"]);
  await settle();
  assert.equal(client.writes.filter(({ name }) => name === "a").length, 1);
  held.resolve(undefined);
  await Promise.all([one, two]);
  assert.deepEqual(listed("a"), ["v2", "v3"]);
});

test("a write that fails is the caller's failure, and does not keep the next from being made", async (t) => {
  const { client, report, listed } = await start(t);
  let away = true;
  client.react("patch", "nodes", () => {
    if (away) throw serviceUnavailable("away");
    return undefined;
  });
  await assert.rejects(report.write("a", signal), /away/);
  assert.equal(listed("a"), undefined);
  away = false;
  await report.write("a", signal);
  assert.deepEqual(listed("a"), ["v1"]);
  client.clearActions();
  await report.write("a", signal);
  assert.deepEqual(client.writes, [], "its own last write is known before the cache shows it");
});

test("a node that went is no failure; one that is not known is not written", async (t) => {
  const { client, report } = await start(t);
  client.react("patch", "nodes", () => {
    throw notFound(nodes, "a");
  });
  await report.write("a", signal);
  client.clearActions();
  await report.write("nowhere", signal);
  assert.deepEqual(client.writes, []);
});

test("as many volumes as before, but others, are written", async (t) => {
  const { client, report, usable, listed } = await start(t);
  await report.write("a", signal);
  usable.set("a", ["v2"]);
  await report.write("a", signal);
  assert.deepEqual(listed("a"), ["v2"]);
  await report.write("a", signal);
  assert.equal(client.writes.length, 2);
});

test("a write that fails does not fail the one that waits for it", async (t) => {
  const { client, report, listed } = await start(t);
  const held = Promise.withResolvers<never>();
  let first = true;
  client.react("patch", "nodes", () => {
    if (!first) return undefined;
    first = false;
    return held.promise;
  });
  const one = report.write("a", signal);
  const two = report.write("a", signal);
  await settle();
  held.reject(serviceUnavailable("away"));
  await assert.rejects(one, /away/);
  await two;
  assert.deepEqual(listed("a"), ["v1"]);
});

test("a volume that has another device now is written, one whose device is the same is not", async (t) => {
  const { client, report, devices } = await start(t);
  await report.write("a", signal);
  devices.set("v1", "/dev/x");
  for (let i = 0; i < 2; i++) await report.write("a", signal);
  assert.deepEqual(client.object<Node>(nodes, "a")?.status?.volumesAttached, [{ name: "v1", devicePath: "/dev/x" }]);
  assert.equal(client.writes.length, 2);
});

test("what a node may use is listed by name", async (t) => {
  const { report, usable, listed } = await start(t);
  usable.set("a", ["v3", "v1", "v2"]);
  await report.write("a", signal);
  assert.deepEqual(listed("a"), ["v1", "v2", "v3"]);
});
