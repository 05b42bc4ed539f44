import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { aPod } from "@coxswain/apimachinery/testing/builders";
import { isTerminated } from "./pod-volumes.ts";

const running = { running: {} };
const ended = { terminated: { exitCode: 0 } };
const waiting = { waiting: {} };
const being = (state?: object) => [
  { name: "first", state: ended },
  { name: "second", ...(state && { state }) },
];

for (const { name, status, isDeleted = true, want } of [
  { name: "that is finished", status: { phase: "Failed", containerStatuses: being(running) }, isDeleted: false, want: true },
  { name: "that is not deleted", status: { containerStatuses: being(ended) }, isDeleted: false, want: false },
  { name: "that is deleted and never started", status: {}, want: true },
  {
    name: "whose containers have ended or wait",
    status: { containerStatuses: [...being(ended), ...being(waiting)] },
    want: true,
  },
  { name: "whose second container runs", status: { containerStatuses: being(running) }, want: false },
  { name: "whose second container has no state yet", status: { containerStatuses: being() }, want: false },
  { name: "whose second init container runs", status: { initContainerStatuses: being(running) }, want: false },
  { name: "whose second ephemeral container runs", status: { ephemeralContainerStatuses: being(running) }, want: false },
])
  test(`a pod ${name} ${want ? "no longer uses" : "uses"} its volumes`, () => {
    const { status: _, ...pod } = aPod(isDeleted ? { deletedAt: "2022-01-01T00:00:00Z" } : {});
    assert.equal(isTerminated({ ...pod, status } as Pod), want);
  });
