import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { aPod, type PodOptions } from "@coxswain/apimachinery/testing/builders";
import { type DeletionRules, inDeletionOrder } from "./deletion-order.ts";

const rules: DeletionRules = { now: Date.parse("2024-01-02T00:00:00Z"), byCost: true, byMagnitude: true };
const cost = (value: string): Record<string, string> => ({ "controller.kubernetes.io/pod-deletion-cost": value });

const onNode: PodOptions = { nodeName: "n1" };
for (const { name, first, second, kin = [0, 0], gates } of [
  { name: "one without a node", first: {}, second: onNode },
  { name: "a pending one before a running one", first: { ...onNode, phase: "Pending" }, second: { ...onNode, ready: false } },
  { name: "one that is not ready", first: { ...onNode, ready: false }, second: onNode },
  {
    name: "one of no cost, being beyond 32 bits,",
    first: { ...onNode, annotations: cost("2147483648") },
    second: { ...onNode, annotations: cost("1") },
  },
  {
    name: "one of lower cost with zeros in front",
    first: { ...onNode, annotations: cost("-007") },
    second: { ...onNode, annotations: cost("-6") },
  },
  {
    name: "one of no cost, being a number with a zero in front,",
    first: { ...onNode, annotations: cost("07") },
    second: { ...onNode, annotations: cost("1") },
  },
  { name: "one of lower cost", first: { ...onNode, annotations: cost("-5") }, second: onNode },
  {
    name: "one of no cost before one of a cost",
    first: { ...onNode, annotations: cost("+1") },
    second: { ...onNode, annotations: cost("1") },
  },
  {
    name: "one that is not ready, whatever it costs,",
    first: { ...onNode, ready: false, annotations: cost("5") },
    second: { ...onNode, annotations: cost("-5") },
  },
  { name: "one whose node has more of its kin", first: onNode, second: { nodeName: "n2" }, kin: [2, 1] },
  { name: "one ready for a shorter time", first: { ...onNode, readySince: "2024-01-01T23:59:00Z" }, second: onNode },
  { name: "one ready since nobody knows when", first: { ...onNode, readySince: "" }, second: onNode },
  { name: "one of unknown age", first: { ...onNode, createdAt: "" }, second: onNode },
  {
    name: "without LogarithmicScaleDown one ready since nobody knows when",
    first: { ...onNode, readySince: "" },
    second: onNode,
    gates: { byMagnitude: false },
  },
  { name: "one with more restarts", first: { ...onNode, restarts: 3 }, second: { ...onNode, restarts: 1 } },
  {
    name: "the younger, whatever its uid,",
    first: { ...onNode, uid: "b", createdAt: "2024-01-01T23:00:00Z" },
    second: { ...onNode, uid: "a", createdAt: "2023-12-01T00:00:00Z" },
  },
  { name: "the younger", first: { ...onNode, createdAt: "2024-01-01T23:00:00Z" }, second: onNode },
  {
    name: "of about the same age the lower uid",
    first: { ...onNode, uid: "a", createdAt: "2024-01-01T00:00:00Z" },
    second: { ...onNode, uid: "b", createdAt: "2024-01-01T01:00:00Z" },
  },
  {
    name: "of one that is made now and one that a faster clock made the lower uid",
    first: { ...onNode, uid: "a", createdAt: "2024-01-02T00:00:01Z" },
    second: { ...onNode, uid: "b", createdAt: "2024-01-02T00:00:00Z" },
  },
  {
    name: "without LogarithmicScaleDown the younger, however small the difference,",
    first: { ...onNode, uid: "b", createdAt: "2024-01-01T00:00:01Z" },
    second: { ...onNode, uid: "a", createdAt: "2024-01-01T00:00:00Z" },
    gates: { byMagnitude: false },
  },
  {
    name: "without PodDeletionCost one with more restarts, whatever it costs,",
    first: { ...onNode, restarts: 1, annotations: cost("5") },
    second: onNode,
    gates: { byCost: false },
  },
] as { name: string; first: PodOptions; second: PodOptions; kin?: number[]; gates?: Partial<DeletionRules> }[]) {
  test(`deletes ${name} first`, () => {
    const [a, b] = [aPod({ name: "a", ...first }), aPod({ name: "b", ...second })];
    const onSameNode = (pod: Pod) => kin[pod === a ? 0 : 1] as number;
    for (const pods of [
      [a, b],
      [b, a],
    ])
      assert.equal(inDeletionOrder(pods, onSameNode, { ...rules, ...gates })[0], a);
  });
}
