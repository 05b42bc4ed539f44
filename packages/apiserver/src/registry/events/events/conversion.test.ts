import assert from "node:assert/strict";
import { test } from "node:test";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { eventFromCore, eventToCore } from "./conversion.ts";

const core = {
  apiVersion: "v1",
  kind: "Event",
  metadata: { name: "e" },
  involvedObject: { kind: "Pod", name: "p" },
  message: "m",
  reason: "R",
  reportingComponent: "c",
  source: { component: "kubelet" },
  firstTimestamp: "2022-01-01T00:00:00Z",
  lastTimestamp: "2022-01-01T00:00:01Z",
  count: 2,
} as unknown as KubeObject;

test("an event has other field names in events.k8s.io, and the same in both directions", () => {
  const converted = eventFromCore("events.k8s.io/v1")(core);
  assert.deepEqual(converted, {
    apiVersion: "events.k8s.io/v1",
    kind: "Event",
    metadata: { name: "e" },
    regarding: { kind: "Pod", name: "p" },
    note: "m",
    reason: "R",
    reportingController: "c",
    deprecatedSource: { component: "kubelet" },
    deprecatedFirstTimestamp: "2022-01-01T00:00:00Z",
    deprecatedLastTimestamp: "2022-01-01T00:00:01Z",
    deprecatedCount: 2,
  });
  assert.deepEqual(eventToCore(converted), core);
});
