import assert from "node:assert/strict";
import { test } from "node:test";
import type { NodeSelectorTerm } from "../objects/schema/kinds/core/v1.ts";
import { matchesTerm, matchingTerms } from "./node-selector.ts";

const nodes: { metadata: { name: string; labels?: Record<string, string> } }[] = [
  { metadata: { name: "bare" } },
  { metadata: { name: "a", labels: { zone: "z1", cores: "8" } } },
  { metadata: { name: "b", labels: { zone: "z2", disk: "ssd" } } },
];

const requirements = [
  { key: "zone", operator: "In", values: ["z1", "z3"] },
  { key: "zone", operator: "In", values: ["z1", ...Array.from({ length: 64 }, (_, i) => `other-${i}`)] },
  { key: "zone", operator: "NotIn", values: ["z1"] },
  { key: "disk", operator: "Exists" },
  { key: "disk", operator: "DoesNotExist" },
  { key: "cores", operator: "Gt", values: ["4"] },
  { key: "cores", operator: "Lt", values: ["4"] },
] as const;
const names = [
  { key: "metadata.name", operator: "In", values: ["a"] },
  { key: "metadata.name", operator: "NotIn", values: ["a"] },
  { key: "metadata.uid", operator: "In", values: ["a"] },
] as const;

/** Each requirement alone, with each name, and in pairs. */
const terms: NodeSelectorTerm[] = [
  {},
  ...requirements.map((one) => ({ matchExpressions: [{ ...one }] })),
  ...names.map((one) => ({ matchFields: [{ ...one }] })),
  ...requirements.flatMap((one) => names.map((name) => ({ matchExpressions: [{ ...one }], matchFields: [{ ...name }] }))),
  ...requirements.flatMap((one) => requirements.map((other) => ({ matchExpressions: [{ ...one }, { ...other }] }))),
] as NodeSelectorTerm[];

for (const node of nodes) {
  test(`of many terms those match node ${node.metadata.name} that match it one by one`, () => {
    const itself = (term: NodeSelectorTerm): NodeSelectorTerm => term;
    const found = new Set(matchingTerms(terms, itself, node));
    const wanted = terms.filter((term) => matchesTerm(term, node));
    assert.deepEqual(
      terms.filter((term) => found.has(term)),
      wanted,
    );
    assert.ok(wanted.length > 0 && wanted.length < terms.length);
  });
}
