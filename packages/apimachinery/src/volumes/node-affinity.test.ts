import assert from "node:assert/strict";
import { test } from "node:test";
import type { NodeSelectorTerm, PersistentVolume } from "../objects/schema/kinds/core/v1.ts";
import { fitsNode } from "./node-affinity.ts";

const on = (key: string, ...values: string[]): NodeSelectorTerm => ({ matchExpressions: [{ key, operator: "In", values }] });

for (const [name, nodeAffinity, want] of [
  ["without an affinity", undefined, true],
  ["without required terms", {}, true],
  ["with a term for the node", { required: { nodeSelectorTerms: [on("zone", "b", "a")] } }, true],
  ["whose second term is for the node", { required: { nodeSelectorTerms: [on("zone", "b"), on("zone", "a")] } }, true],
  ["for another node", { required: { nodeSelectorTerms: [on("zone", "b")] } }, false],
  ["with no terms", { required: { nodeSelectorTerms: [] } }, false],
  ["for a label that the node lacks", { required: { nodeSelectorTerms: [on("rack", "a")] } }, false],
] as [string, PersistentVolume["spec"]["nodeAffinity"], boolean][]) {
  test(`a volume ${name} ${want ? "fits" : "does not fit"}`, () => {
    const volume: PersistentVolume = { metadata: { name: "pv" }, spec: { ...(nodeAffinity !== undefined && { nodeAffinity }) } };
    assert.equal(fitsNode(volume, { zone: "a" }), want);
  });
}
