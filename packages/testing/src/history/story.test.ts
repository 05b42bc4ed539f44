import assert from "node:assert/strict";
import { test } from "node:test";
import type { Client } from "@coxswain/apimachinery/client/client";
import { deployments, nodes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { MemoryEtcd } from "../store/memory-etcd.ts";
import { storyOf } from "./story.ts";
import { WriteLog } from "./write-log.ts";

const startMs = Date.parse("2022-01-01T00:00:00Z");
const bytes = (object: object | string): Buffer => Buffer.from(typeof object === "string" ? object : JSON.stringify(object));

function aStory({ events = [], page }: { events?: object[] | Error; page?: { status: number; body: string } | Error }) {
  const etcd = new MemoryEtcd();
  const asked: unknown[] = [];
  let atMs = startMs;
  let by: { by: string; method: string; path: string } | undefined;
  const writes = new WriteLog(
    etcd,
    () => atMs,
    () => by,
  );
  const client = {
    async list(_: unknown, scope: object, options: object) {
      asked.push([scope, options]);
      if (events instanceof Error) throw events;
      return { items: events };
    },
    async raw(method: string, path: string, { headers }: { headers: object }) {
      asked.push([method, path, headers]);
      if (page instanceof Error) throw page;
      return { status: page?.status ?? 404, body: Buffer.from(page?.body ?? "not found") };
    },
  } as unknown as Client; // cast: all that a story calls
  const write = (key: string, object: object | string | undefined, ms: number, who?: string): void => {
    atMs = startMs + ms;
    by = who === undefined ? undefined : { by: who, method: "PUT", path: "" };
    if (object === undefined) etcd.txn({ compare: [], success: [{ type: "delete", key }], failure: [] });
    else etcd.put(key, bytes(object));
  };
  return { client, writes, write, asked };
}

test("the story of an object has its writes, its events in the order of their times, and the server's explanation", async () => {
  const event = { type: "Warning", reason: "Failed", message: "no" };
  const { client, writes, write, asked } = aStory({
    events: [
      { ...event, eventTime: "2022-01-01T00:00:09.500Z", count: 3, source: { component: "a" }, reportingComponent: "other" },
      { ...event, lastTimestamp: "2022-01-01T00:00:02Z", source: {}, reportingComponent: "b" },
      { ...event, lastTimestamp: "2022-01-01T00:00:01Z", reportingComponent: "", count: 1 },
    ],
    page: { status: 200, body: "Cause: x\n\n  more\n\n" },
  });
  const key = "/registry/deployments/default/web";
  write(key, { spec: { replicas: 1 } }, 0, "test");
  write(key, { spec: { replicas: 2 } }, 1_234, "operator");
  write("/registry/deployments/default/web-2", {}, 1_500, "operator");
  write(key, "no JSON", 2_000);
  write(key, undefined, 61_000, "gc");
  const target = { namespace: "default", name: "web" };
  assert.equal(
    await storyOf(deployments, target, { client, writes, startMs }),
    `What happened:
  +0.000s created by test (PUT)
  +1.234s changed by operator (PUT)
      spec.replicas: 1 → 2
  +2.000s changed by the store itself
      : {"spec":{"replicas":2}} → absent
  +61.000s deleted by gc (PUT)

Events:
  +1.000s Warning Failed from unknown: no
  +2.000s Warning Failed from b: no
  +9.500s Warning Failed from a (3 times): no

Why (as \`kubectl why\` says):
  Cause: x

    more`,
  );
  assert.deepEqual(asked, [
    [{ namespace: "default" }, { fieldSelector: "involvedObject.kind=Deployment,involvedObject.name=web" }],
    ["GET", "/debug/explain/namespaces/default/deployments.apps/web", { accept: "text/plain" }],
  ]);
});

test("the story of an object without a namespace is asked for without one; what cannot be read is left out", async () => {
  const { client, writes, asked } = aStory({ events: new Error("forbidden"), page: new Error("gone") });
  const story = await storyOf(nodes, { name: "n1" }, { client, writes, startMs });
  assert.equal(story, "What happened:\n  no write of it was seen\n\nEvents:\n  cannot be read: Error: forbidden");
  assert.deepEqual(asked, [
    [{}, { fieldSelector: "involvedObject.kind=Node,involvedObject.name=n1" }],
    ["GET", "/debug/explain/nodes/n1", { accept: "text/plain" }],
  ]);
  assert.equal(await storyOf(nodes, { name: "n1" }, { client: aStory({}).client, writes: undefined, startMs }), "");
});

test("of many writes the last 25 are told, with the number of those before", async () => {
  const { client, writes, write } = aStory({});
  for (let at = 0; at < 27; at++) write("/registry/minions/n1", { at }, at);
  const lines = (await storyOf(nodes, { name: "n1" }, { client, writes, startMs })).split("\n");
  assert.deepEqual(lines.slice(0, 3), ["What happened:", "  … 2 writes before", "  +0.002s changed by the store itself"]);
  assert.equal(lines.filter((line) => line.includes("changed by")).length, 25);
});
