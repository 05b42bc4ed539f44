/** Every field of the mandatory objects is fixed. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { mandatoryLevelProblems, mandatorySchemaProblems } from "./mandatory.ts";

const groups = (...names: string[]): object[] => names.map((name) => ({ kind: "Group", group: { name } }));
const rules = (subjects: object[]): object[] => [
  {
    subjects,
    resourceRules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"], clusterScope: true, namespaces: ["*"] }],
    nonResourceRules: [{ verbs: ["*"], nonResourceURLs: ["*"] }],
  },
];

/** Copies of a value that each differ from it in one place: another scalar, a field or item less, an empty list. */
function* others(value: unknown): Generator<unknown> {
  if (Array.isArray(value)) {
    yield [];
    for (const [i, item] of value.entries()) for (const other of others(item)) yield value.with(i, other);
    yield [...value, ...value];
    return;
  }
  if (typeof value !== "object" || value === null) return yield typeof value === "number" ? value + 1 : `${value}x`;
  for (const [key, item] of Object.entries(value)) {
    const { [key as keyof typeof value]: _dropped, ...rest } = value;
    yield rest;
    for (const other of others(item)) yield { ...value, [key]: other };
  }
}

for (const { name, problems, spec } of [
  {
    name: "exempt",
    problems: mandatorySchemaProblems,
    spec: {
      priorityLevelConfiguration: { name: "exempt" },
      matchingPrecedence: 1,
      rules: rules(groups("system:masters")),
    },
  },
  {
    name: "catch-all",
    problems: mandatorySchemaProblems,
    spec: {
      priorityLevelConfiguration: { name: "catch-all" },
      matchingPrecedence: 10_000,
      distinguisherMethod: { type: "ByUser" },
      rules: rules(groups("system:unauthenticated", "system:authenticated")),
    },
  },
  { name: "exempt", problems: mandatoryLevelProblems, spec: { type: "Exempt" } },
  {
    name: "catch-all",
    problems: mandatoryLevelProblems,
    spec: { type: "Limited", limited: { assuredConcurrencyShares: 5, limitResponse: { type: "Reject" } } },
  },
]) {
  test(`${name} has one spec as a ${problems === mandatorySchemaProblems ? "schema" : "level"}, others may have any`, () => {
    const of = (spec: unknown, called = name) =>
      problems({ metadata: { name: called }, ...(spec !== undefined && { spec }) } as never);
    assert.deepEqual(of(spec), []);
    const different = [undefined, {}, ...others(spec)];
    assert.ok(different.length > 2);
    for (const other of different) {
      const shown = of(other).map(({ type, field, detail }) => [type, field, detail]);
      const want = ["FieldValueInvalid", "spec", `spec of '${name}' must equal the fixed value`];
      assert.deepEqual(shown, [want], JSON.stringify(other));
      assert.deepEqual(of(other, `${name}x`), []);
    }
  });
}
