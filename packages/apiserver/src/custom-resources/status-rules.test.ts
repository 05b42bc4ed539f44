import assert from "node:assert/strict";
import { test } from "node:test";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { type CustomResourceDefinition, isSameState } from "./definitions.ts";
import { apiApproval, nonStructuralSchema } from "./status-rules.ts";

const object = { type: "object" };
const aDefinition = (spec: object, annotations?: object): CustomResourceDefinition =>
  ({ metadata: { name: "a", annotations }, spec: { group: "example.com", versions: [], ...spec } }) as never;
const version = (name: string, schema?: object) => ({ name, ...(schema && { schema: { openAPIV3Schema: schema } }) });

const key = "api-approved.kubernetes.io";
const policy = "see https://github.com/kubernetes/enhancements/pull/1111";
for (const { value, state } of [
  {
    value: undefined,
    state: ["False", "MissingAnnotation", `protected groups must have approval annotation "${key}", ${policy}`],
  },
  { value: "unapproved, a test", state: ["False", "UnapprovedAnnotation", 'not approved: "unapproved, a test"'] },
  {
    value: "yes",
    state: [
      "False",
      "InvalidAnnotation",
      `protected groups must have approval annotation "${key}" with either a URL or a reason starting with "unapproved", ${policy}`,
    ],
  },
  { value: "https://a.b/c", state: ["True", "ApprovedAnnotation", "approved in https://a.b/c"] },
]) {
  test(`a group of the project with the approval ${value} has the condition ${state[1]}`, () => {
    const definition = aDefinition({ group: "x.k8s.io" }, value === undefined ? undefined : { [key]: value });
    const { type, status, reason, message } = apiApproval(definition) ?? {};
    assert.deepEqual([type, status, reason, message], ["KubernetesAPIApprovalPolicyConformant", ...state]);
  });
}

test("another group needs no approval, whatever is annotated", () => {
  assert.equal(apiApproval(aDefinition({}, { [key]: "yes" })), undefined);
});

for (const { name, spec, want } of [
  {
    name: "structural schemas, and versions without one",
    spec: { versions: [version("v1"), version("v2", object)] },
    want: undefined,
  },
  {
    name: "unknown fields that are kept everywhere",
    spec: { preserveUnknownFields: true, versions: [version("v1", object)] },
    want: ["Violations", "spec.preserveUnknownFields: Invalid value: true: must be false"],
  },
  {
    name: "violations of two versions beside unknown fields",
    spec: { preserveUnknownFields: true, versions: [version("v1", {}), version("v2", {})] },
    want: [
      "Violations",
      "[spec.preserveUnknownFields: Invalid value: true: must be false, spec.versions[0].schema.openAPIV3Schema.type: Required value: must not be empty at the root, spec.versions[1].schema.openAPIV3Schema.type: Required value: must not be empty at the root]",
    ],
  },
  {
    name: "a keyword that no structure has",
    spec: { versions: [version("v1", object), version("v2", { ...object, $schema: "x" })] },
    want: ["StructuralError", "failed to check validation schema for version v2: OpenAPIV3Schema is not supported"],
  },
]) {
  test(`the structure of ${name}`, () => {
    const state = atOnce(nonStructuralSchema(aDefinition(spec)));
    assert.deepEqual(
      state && [state.type, state.status, state.reason, state.message],
      want && ["NonStructuralSchema", "True", ...want],
    );
  });
}

test("conditions are the same by status, reason and message", () => {
  const one = { type: "NamesAccepted", status: "True", reason: "R", message: "m" } as const;
  const { reason: _, message: __, ...bare } = one;
  for (const [a, b, want] of [
    [undefined, undefined, true],
    [one, undefined, false],
    [undefined, one, false],
    [one, { ...one, type: "Established" }, true],
    [one, { ...one, status: "False" }, false],
    [one, { ...one, reason: "S" }, false],
    [one, { ...one, message: "n" }, false],
    [bare, { ...bare, reason: "", message: "" }, true],
  ] as const) {
    assert.equal(isSameState(a, b), want);
  }
});
