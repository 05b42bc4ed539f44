import assert from "node:assert/strict";
import { test } from "node:test";
import { aPod, type PodOptions } from "@coxswain/apimachinery/testing/builders";
import { inRemovalOrder } from "./removal-order.ts";

const onNode: PodOptions = { nodeName: "n1" };
for (const { name, first, second } of [
  { name: "one without a node", first: {}, second: onNode },
  { name: "a pending one before a running one", first: { ...onNode, phase: "Pending" }, second: { ...onNode, ready: false } },
  { name: "one that is not ready", first: { ...onNode, ready: false }, second: onNode },
  { name: "one ready for a shorter time", first: { ...onNode, readySince: "2024-01-01T23:59:00Z" }, second: onNode },
  { name: "one with more restarts", first: { ...onNode, restarts: 3 }, second: { ...onNode, restarts: 1 } },
  { name: "the younger", first: { ...onNode, createdAt: "2024-01-01T00:00:01Z" }, second: onNode },
] as { name: string; first: PodOptions; second: PodOptions }[]) {
  test(`gives up ${name} first`, () => {
    const [a, b] = [aPod({ name: "a", ...first }), aPod({ name: "b", ...second })];
    assert.equal(inRemovalOrder([b, a])[0], a);
    assert.equal(inRemovalOrder([a, b])[0], a);
  });
}
