import assert from "node:assert/strict";
import { test } from "node:test";
import { parseRequestInfo } from "../request/request-info.ts";
import { AuditEvent } from "./event.ts";
import { newObjectRecorder } from "./recorded-object.ts";

const source = {
  ...{ auditId: "1", requestUri: "/", info: parseRequestInfo("GET", "/api/v1/pods"), user: undefined },
  ...{ sourceIps: [], userAgent: "", receivedMs: 0 },
};

function anEvent(limits: { maxObjectBytes?: number; maxHeldBytes: number }) {
  const objects = newObjectRecorder(limits);
  const verdict = { level: "RequestResponse", omitStages: new Set(), omitManagedFields: false } as const;
  const event = new AuditEvent(source, verdict as never, objects);
  const recorded = () => JSON.parse(String(event.record("ResponseComplete", 0).item("audit.k8s.io/v1")));
  return { event, objects, recorded };
}

for (const { name, limits } of [
  { name: "one event may hold", limits: { maxObjectBytes: 100, maxHeldBytes: 1000 } },
  { name: "all events may hold", limits: { maxObjectBytes: 1000, maxHeldBytes: 100 } },
]) {
  test(`an event whose objects are more than ${name} gives back all that it held, at once and once`, () => {
    const { event, objects, recorded } = anEvent(limits);
    assert.deepEqual([event.reserve(60), event.reserve(41), event.reserve(1)], [true, false, false]);
    assert.equal(objects.reserve(limits.maxHeldBytes), true, "nothing is held any more");
    event.release();
    assert.equal(objects.reserve(1), false, "nothing was given back twice");
    assert.deepEqual(recorded().annotations, { "audit.k8s.io/truncated": "true" });
  });
}

test("an event without its objects has neither what was recorded before nor what comes later", () => {
  const { event, recorded } = anEvent({ maxObjectBytes: 100, maxHeldBytes: 1000 });
  event.requestPatch(Buffer.from('{"a":1}'));
  assert.equal(
    event.prepare((err) => assert.fail(String(err))),
    undefined,
  );
  assert.deepEqual(recorded().requestObject, { a: 1 });
  assert.equal(event.reserve(100), false);
  event.requestPatch(Buffer.from('{"a":2}'));
  assert.equal(
    event.prepare((err) => assert.fail(String(err))),
    undefined,
  );
  assert.equal(recorded().requestObject, undefined);
});

test("the first of two annotations with one key counts", () => {
  const { event, recorded } = anEvent({ maxHeldBytes: 1000 });
  event.annotate("a", "first");
  event.annotate("a", "second");
  event.annotate("b", "other");
  assert.deepEqual(recorded().annotations, { a: "first", b: "other" });
});

test("an object whose conversion ends after the event was truncated is not recorded", async () => {
  const { event, objects, recorded } = anEvent({ maxObjectBytes: 100, maxHeldBytes: 1000 });
  const converted = Promise.withResolvers<{ json: Buffer }>();
  objects.convert = (() => converted.promise) as typeof objects.convert;
  event.requestPatch(Buffer.from('{"a":1}'));
  const prepared = event.prepare((err) => assert.fail(String(err)));
  assert.equal(event.reserve(100), false);
  converted.resolve({ json: Buffer.from('{"a":1}') });
  await prepared;
  assert.deepEqual([recorded().requestObject, recorded().annotations], [undefined, { "audit.k8s.io/truncated": "true" }]);
});

test("the user is recorded with all that it has, in order, and a long agent is cut off", () => {
  const recordedOf = (more: object) => {
    const verdict = { level: "Metadata", omitStages: new Set(), omitManagedFields: false };
    const event = new AuditEvent({ ...source, ...more }, verdict as never, newObjectRecorder());
    return JSON.parse(String(event.record("ResponseComplete", 0).item("audit.k8s.io/v1")));
  };
  const user = { name: "jane", uid: "1", groups: ["b", "a"], extra: { y: ["2", "1"], x: ["3"] } };
  const whole = recordedOf({ user });
  assert.deepEqual(whole.user, { username: "jane", uid: "1", groups: ["b", "a"], extra: { y: ["2", "1"], x: ["3"] } });
  assert.deepEqual(Object.keys(whole.user.extra), ["x", "y"]);
  for (const nobody of [undefined, { name: "", uid: "", groups: [], extra: {} }])
    assert.deepEqual(recordedOf({ user: nobody }).user, {});
  const agent = "x".repeat(1024);
  assert.equal(recordedOf({ userAgent: agent }).userAgent, agent);
  assert.equal(recordedOf({ userAgent: `${agent}y` }).userAgent, `${agent}...TRUNCATED`);
});

test("the reference names what the request object says where the path does not", () => {
  const { event, recorded } = anEvent({ maxHeldBytes: 1000 });
  event.requestObject({ metadata: { name: "a", namespace: "web", uid: "u", resourceVersion: "7" } }, () => "{}");
  event.requestObject({ metadata: { name: "b", namespace: "other", uid: "v", resourceVersion: "8" } }, () => "{}");
  const ref = { resource: "pods", namespace: "web", name: "a", uid: "u", apiVersion: "v1", resourceVersion: "7" };
  assert.deepEqual(recorded().objectRef, ref);
});
