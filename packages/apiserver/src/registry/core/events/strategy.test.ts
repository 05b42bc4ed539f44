import assert from "node:assert/strict";
import { test } from "node:test";
import type { Event } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { startTestServer } from "../../../testing/start-test-server.ts";
import { agesAt } from "../../generic/ages.ts";
import { validateEvent, validateNewEvent } from "./strategy.ts";
import { eventTable } from "./table.ts";

const event = (fields: object, namespace = "web"): Event =>
  ({ metadata: { name: "e", namespace }, involvedObject: { kind: "Pod", namespace: "web" }, ...fields }) as Event;
const fieldsOf = (errors: { field: string }[]): string[] => errors.map((error) => error.field);

for (const { name, of, want } of [
  { name: "of a pod of its namespace", of: event({}), want: [] },
  {
    name: "of a pod elsewhere",
    of: event({ involvedObject: { kind: "Pod", namespace: "other" } }),
    want: ["involvedObject.namespace"],
  },
  { name: "of a node, in default", of: event({ involvedObject: { kind: "Node" } }, "default"), want: [] },
  { name: "of a node, anywhere else", of: event({ involvedObject: { kind: "Node" } }), want: ["involvedObject.namespace"] },
  {
    name: "with a precise time and nothing else",
    of: event({ eventTime: "2022-01-01T00:00:00.000000Z" }),
    want: ["reportingController", "reportingController", "reportingController", "reportingInstance", "action", "reason"],
  },
]) {
  test(`a core event ${name}: ${want.length} errors`, () => assert.deepEqual(fieldsOf(validateEvent(of)), want));
}

const report = { eventTime: "2022-01-01T00:00:00.000000Z", reportingComponent: "c", reportingInstance: "i", action: "A" };
const reported = { ...report, reason: "R", type: "Normal" };
for (const { name, of, want } of [
  { name: "with every field", of: event(reported), want: [] },
  { name: "of the old way", of: event({ reason: "R", type: "Normal" }), want: ["eventTime"] },
  {
    name: "of a name that core v1 takes",
    of: event({ ...reported, metadata: { name: "A!", namespace: "web" } }),
    want: ["metadata.name"],
  },
  {
    name: "to be named as core v1 names",
    of: event({ ...reported, metadata: { name: "a", generateName: "A!", namespace: "web" } }),
    want: ["metadata.generateName"],
  },
  { name: "of no known type", of: event({ ...reported, type: "Odd" }), want: ["type"] },
  {
    name: "with fields of the old way too",
    of: event({ ...reported, count: 1, firstTimestamp: "2022-01-01T00:00:00Z", source: { component: "c" } }),
    want: ["firstTimestamp", "count", "source"],
  },
  {
    name: "with a series of one",
    of: event({ ...reported, series: { count: 1 } }),
    want: ["series.count", "series.lastObservedTime"],
  },
  { name: "of a node, in kube-system", of: event({ ...reported, involvedObject: { kind: "Node" } }, "kube-system"), want: [] },
  {
    name: "of a host of the old way, and seen last at a time",
    of: event({ ...reported, source: { host: "h" }, lastTimestamp: "2022-01-01T00:00:00Z" }),
    want: ["lastTimestamp", "source"],
  },
  {
    name: "of a series of two, without the time of the second",
    of: event({ ...reported, series: { count: 2 } }),
    want: ["series.lastObservedTime"],
  },
  {
    name: "with fields as long as they may be",
    of: event({
      ...reported,
      reportingInstance: "i".repeat(128),
      action: "a".repeat(128),
      reason: "r".repeat(128),
      message: "m".repeat(1024),
    }),
    want: [],
  },
  {
    name: "with fields that are too long in bytes, not in characters",
    of: event({
      ...reported,
      reportingInstance: "é".repeat(65),
      action: "é".repeat(65),
      reason: "é".repeat(65),
      message: "é".repeat(513),
    }),
    want: ["reportingInstance", "action", "reason", "message"],
  },
  { name: "of a node, in default", of: event({ ...reported, involvedObject: { kind: "Node" } }, "default"), want: [] },
  {
    name: "of a node, anywhere else",
    of: event({ ...reported, involvedObject: { kind: "Node" } }),
    want: ["involvedObject.namespace"],
  },
  { name: "of a pod elsewhere", of: event({ ...reported, involvedObject: { kind: "Pod", namespace: "other" } }), want: [] },
  { name: "with a long note", of: event({ ...reported, message: "x".repeat(1025) }), want: ["message"] },
]) {
  test(`an event of events.k8s.io ${name}: ${want.length} errors`, () => assert.deepEqual(fieldsOf(validateNewEvent(of)), want));
}

test("over the server, v1beta1 takes what v1 refuses", async (t) => {
  const server = await startTestServer(t);
  const send = (version: string) =>
    server.request("POST", `/apis/events.k8s.io/${version}/namespaces/default/events`, {
      metadata: { name: `of-${version}` },
      regarding: { kind: "Pod", namespace: "default", name: "p" },
      reason: "R",
    });
  const { code, body } = await send("v1");
  assert.equal(code, 422);
  assert.deepEqual(fieldsOf(body.details.causes), ["eventTime", "type"]);
  assert.equal((await send("v1beta1")).code, 201);
});

test("over the server, a note may be patched through v1, but not grow too long", async (t) => {
  const server = await startTestServer(t);
  const path = "/apis/events.k8s.io/v1/namespaces/default/events";
  const created = await server.request("POST", path, {
    metadata: { name: "noted" },
    regarding: { kind: "Pod", namespace: "default", name: "p" },
    eventTime: "2022-01-01T00:00:00.000000Z",
    reportingController: "c",
    reportingInstance: "i",
    action: "A",
    reason: "R",
    type: "Normal",
    note: "before",
  });
  assert.equal(created.code, 201);
  const patch = (note: string) =>
    server.request("PATCH", `${path}/noted`, { note }, { "content-type": "application/strategic-merge-patch+json" });
  const { code, body } = await patch("after");
  assert.equal(code, 200);
  assert.equal(body.note, "after");
  assert.equal((await patch("x".repeat(1025))).code, 422);
});

test("the count of a series leaves out the event before it, the table's does not", () => {
  const counts = [{}, { count: 3 }, { series: { count: 5 } }].map((reported) => {
    const cells = eventTable.cells({ metadata: { name: "a" }, involvedObject: {}, ...reported }, agesAt(0));
    return cells[eventTable.columns.findIndex(({ name }) => name === "Count")];
  });
  assert.deepEqual(counts, [1, 3, 6]);
});
