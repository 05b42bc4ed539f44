import assert from "node:assert/strict";
import { test } from "node:test";
import { aPod, aService } from "@coxswain/apimachinery/testing/builders";
import { lastChangeAnnotation, newTriggerTimes, withTriggerTime } from "./trigger-times.ts";

const at = (minute: number): string => `2022-01-01T00:0${minute}:00Z`;
const podAt = (name: string, minute: number) => aPod({ name, readySince: at(minute) });
const service = aService({ createdAt: at(1) });

test("the first time counts as when the service was made, then what changed, the earliest first", () => {
  const times = newTriggerTimes();
  assert.equal(times.update(service, [podAt("a", 2)]), at(1));
  assert.equal(times.update(service, [podAt("a", 2)]), undefined);
  assert.equal(times.update(service, [podAt("a", 2), podAt("b", 5), podAt("c", 4), podAt("d", 6)]), at(4));
  assert.equal(times.update(service, [podAt("a", 3), podAt("b", 5)]), at(3));
  assert.equal(times.update(service, [podAt("a", 1)]), undefined, "a time that went back is no news");
  times.forget("default/web");
  assert.equal(times.update(service, []), at(1));
});

test("a time replaces the one before, none removes it", () => {
  const annotations = { a: "b", [lastChangeAnnotation]: at(1) };
  assert.deepEqual(withTriggerTime(annotations, at(2)), { a: "b", [lastChangeAnnotation]: at(2) });
  assert.deepEqual(withTriggerTime(annotations, undefined), { a: "b" });
  assert.deepEqual(withTriggerTime(undefined, undefined), {});
});

test("a pod without a time hides neither the one after it nor that of a service without one", () => {
  const times = newTriggerTimes();
  const { creationTimestamp: _, ...metadata } = service.metadata;
  const untimed = { ...service, metadata };
  const none = aPod({ name: "none", status: { conditions: [] } });
  assert.equal(times.update(untimed, [none, podAt("a", 2)]), undefined);
  assert.equal(times.update(untimed, [none, podAt("a", 4), podAt("b", 3)]), at(3));
  assert.equal(times.update(untimed, [none, podAt("a", 5)]), at(5), "what was seen is known of each pod for itself");
});

test("a change is news once, also after others", () => {
  const times = newTriggerTimes();
  times.update(service, [podAt("a", 2)]);
  assert.equal(times.update(service, [podAt("a", 3)]), at(3));
  assert.equal(times.update(service, [podAt("a", 3)]), undefined);
});
