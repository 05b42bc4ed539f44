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
  {
    name: "one in an unknown phase before a running one",
    first: { ...onNode, phase: "Unknown" },
    second: { ...onNode, ready: false },
  },
  {
    name: "a pending one before one in an unknown phase",
    first: { ...onNode, phase: "Pending" },
    second: { ...onNode, phase: "Unknown" },
  },
  {
    name: "one ready for a shorter time, whatever restarted more often",
    first: { ...onNode, readySince: "2024-01-01T23:59:00Z" },
    second: { ...onNode, restarts: 3 },
  },
  {
    name: "of two that are not ready the one with more restarts",
    first: { ...onNode, ready: false, restarts: 3, readySince: "2024-01-01T00:00:00Z" },
    second: { ...onNode, ready: false, readySince: "2024-01-01T23:59:00Z" },
  },
  { name: "the younger", first: { ...onNode, createdAt: "2024-01-01T00:00:01Z" }, second: onNode },
  { name: "one that is ready since nobody knows when", first: { ...onNode, readySince: "" }, second: onNode },
  { name: "one of unknown age", first: { ...onNode, createdAt: "" }, second: onNode },
] as { name: string; first: PodOptions; second: PodOptions }[]) {
  test(`gives up ${name} first`, () => {
    const [a, b] = [aPod({ name: "a", ...first }), aPod({ name: "b", ...second })];
    assert.equal(inRemovalOrder([b, a])[0], a);
    assert.equal(inRemovalOrder([a, b])[0], a);
  });
}

test("of the restarts of a pod's containers the most count", () => {
  const pod = (name: string, ...counts: number[]) => {
    const made = aPod({ ...onNode, name });
    const containerStatuses = counts.map((restartCount) => ({ name: "c", ready: true, image: "i", imageID: "", restartCount }));
    return { ...made, status: { ...made.status, containerStatuses } };
  };
  const order = inRemovalOrder([pod("a", 2, 2), pod("b", 0, 3), pod("c", 1, 0)]);
  assert.deepEqual(
    order.map(({ metadata }) => metadata.name),
    ["b", "a", "c"],
  );
});
