import assert from "node:assert/strict";
import { test } from "node:test";
import type { Event } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { validateEvent, validateNewEvent } from "./strategy.ts";

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
    want: ["reportingComponent", "reportingInstance", "action", "reason"],
  },
]) {
  test(`a core event ${name}: ${want.length} errors`, () => assert.deepEqual(fieldsOf(validateEvent(of)), want));
}

test("events.k8s.io asks for who reports what", () => {
  assert.deepEqual(fieldsOf(validateNewEvent(event({ reason: "R", type: "Normal" }))), [
    "eventTime",
    "reportingController",
    "reportingInstance",
    "action",
  ]);
});
