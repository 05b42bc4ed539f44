import assert from "node:assert/strict";
import { test } from "node:test";
import type { NodeSelectorTerm, Pod } from "../objects/schema/kinds/core/v1.ts";
import { matchesNode, matchesTerm, matchingTerms, selectsNodes } from "./node-selector.ts";

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

const labelled = {
  metadata: { name: "n", labels: { zone: "z1", cores: "8", big: "9223372036854775807", empty: "", text: "8x" } },
};
for (const [key, operator, values, want] of [
  ["zone", "In", ["z2", "z1"], true],
  ["zone", "In", [], false],
  ["rack", "In", [""], false],
  ["empty", "In", [""], true],
  ["zone", "NotIn", ["z2"], true],
  ["zone", "NotIn", ["z2", "z1"], false],
  ["rack", "NotIn", ["z1"], true],
  ["empty", "Exists", [], true],
  ["rack", "Exists", [], false],
  ["empty", "DoesNotExist", [], false],
  ["rack", "DoesNotExist", [], true],
  ["cores", "Gt", ["7"], true],
  ["cores", "Gt", ["8"], false],
  ["cores", "Lt", ["9"], true],
  ["cores", "Lt", ["8"], false],
  ["cores", "Lt", ["10"], true],
  ["cores", "Gt", ["-1"], true],
  ["big", "Gt", ["9223372036854775806"], true],
  ["rack", "Lt", ["9"], false],
  ["cores", "Gt", [], false],
  ["cores", "Gt", ["x"], false],
  ["text", "Gt", ["7"], false],
  ["zone", "Like", ["z1"], false],
  ["constructor", "Exists", [], false],
] as [string, string, string[], boolean][]) {
  test(`${key} ${operator} ${JSON.stringify(values)} ${want ? "matches" : "does not match"} the node`, () => {
    // Cast: the types list only the operators that exist.
    const term = { matchExpressions: [{ key, operator, values }] } as NodeSelectorTerm;
    assert.equal(matchesTerm(term, labelled), want);
    const and = { matchExpressions: [{ key: "zone", operator: "Exists" }, ...(term.matchExpressions ?? [])] } as NodeSelectorTerm;
    assert.equal(matchesTerm(and, labelled), want);
  });
}

test("fields are those of the node, of which only the name is known", () => {
  const field = (key: string, operator: string, ...values: string[]) =>
    matchesTerm({ matchFields: [{ key, operator, values }] } as NodeSelectorTerm, labelled);
  assert.deepEqual(
    [field("metadata.name", "In", "n"), field("metadata.name", "In", "m"), field("metadata.name", "NotIn", "n")],
    [true, false, false],
  );
  assert.deepEqual([field("metadata.uid", "In", "n"), field("metadata.uid", "NotIn", "n")], [false, true]);
  assert.deepEqual([matchesTerm({}, labelled), matchesTerm({ matchExpressions: [], matchFields: [] }, labelled)], [false, false]);
});

test("a pod's node has its nodeSelector and one of the required terms", () => {
  const on = (zone: string) => ({ matchExpressions: [{ key: "zone", operator: "In", values: [zone] }] });
  const pod = (nodeSelector?: Record<string, string>, terms?: object[]): Pod =>
    ({
      metadata: { name: "p" },
      spec: {
        containers: [],
        ...(nodeSelector && { nodeSelector }),
        ...(terms && {
          affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } } },
        }),
      },
    }) as Pod;
  for (const [one, selects, want] of [
    [pod(), false, true],
    [pod({}), true, true],
    [pod({ zone: "z1", cores: "8" }), true, true],
    [pod({ zone: "z1", cores: "9" }), true, false],
    [pod({ rack: "" }), true, false],
    [pod({ empty: "" }), true, true],
    [pod(undefined, [on("z2"), on("z1")]), true, true],
    [pod(undefined, [on("z2")]), true, false],
    [pod(undefined, []), true, false],
    [pod({ cores: "9" }, [on("z1")]), true, false],
    [pod({ cores: "8" }, [on("z2")]), true, false],
  ] as const) {
    assert.deepEqual([selectsNodes(one), matchesNode(one, labelled)], [selects, want], JSON.stringify(one.spec));
  }
  assert.equal(matchesNode(pod({ zone: "z1" }), { metadata: { name: "bare" } }), false);
});

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

test("of many terms one that names a value twice is found once", () => {
  const twice = { matchExpressions: [{ key: "zone", operator: "In" as const, values: ["z1", "z1"] }] };
  const byName = { matchFields: [{ key: "metadata.name", operator: "In" as const, values: ["a", "a"] }] };
  const many: NodeSelectorTerm[] = [twice, byName, ...Array.from({ length: 40 }, () => ({}))];
  const node = { metadata: { name: "a", labels: { zone: "z1" } } };
  assert.deepEqual([...matchingTerms(many, (term) => term, node)].length, 2);
});

for (const [operator, value, bound, want] of [
  ["Gt", "4", "4", false],
  ["Gt", "5", "4", true],
  ["Lt", "4", "4", false],
  ["Lt", "-1", "0", true],
  ["Gt", "+5", "0004", true],
  ["Gt", "9223372036854775807", "9223372036854775806", true],
  ["Gt", "9223372036854775808", "1", false],
  ["Lt", "-9223372036854775809", "1", false],
  ["Gt", "00000000000000000000000005", "4", true],
  ["Gt", "5.0", "4", false],
  ["Gt", "0x10", "4", false],
] as const) {
  test(`${value} is ${want ? "" : "not "}${operator} ${bound}`, () => {
    const term = { matchExpressions: [{ key: "n", operator, values: [bound] }] };
    assert.equal(matchesTerm(term, { metadata: { name: "a", labels: { n: value } } }), want);
  });
}
