import assert from "node:assert/strict";
import { test } from "node:test";
import { type CustomResourceDefinition, isNamespaced, isSameState, isTrue, statusOf } from "./definitions.ts";

const state = { type: "Established", status: "True", reason: "Because", message: "so" } as const;
for (const { name, a, b, same } of [
  { name: "the same", a: state, b: { ...state }, same: true },
  { name: "another status", a: state, b: { ...state, status: "False" }, same: false },
  { name: "another reason", a: state, b: { ...state, reason: "Other" }, same: false },
  { name: "another message", a: state, b: { ...state, message: "not so" }, same: false },
  {
    name: "no reason and no message",
    a: { ...state, reason: "", message: "" },
    b: { type: state.type, status: "True" },
    same: true,
  },
  { name: "none where there was one", a: undefined, b: state, same: false },
  { name: "one where there was none", a: state, b: undefined, same: false },
  { name: "none where there was none", a: undefined, b: undefined, same: true },
] as const) {
  test(`a condition that becomes ${name} is ${same ? "not " : ""}written`, () => {
    assert.equal(isSameState(a as typeof state | undefined, b as typeof state | undefined), same);
  });
}

const withStatus = (status: object | undefined, scope = "Namespaced") =>
  ({ metadata: { name: "a.b" }, spec: { scope }, status }) as unknown as CustomResourceDefinition;

test("the status of a new definition has empty lists and names, that of another one what it has", () => {
  assert.deepEqual(statusOf(withStatus(undefined)), {
    ...{ conditions: [], acceptedNames: { plural: "", kind: "" }, storedVersions: [] },
  });
  const status = { conditions: [state], acceptedNames: { plural: "as", kind: "A" }, storedVersions: ["v1"] };
  assert.deepEqual(statusOf(withStatus(status)), status);
});

test("a condition holds with the status True alone, and is found behind others", () => {
  const conditions = [
    { type: "NamesAccepted", status: "Unknown" },
    { type: "Established", status: "True" },
  ];
  const definition = withStatus({ conditions });
  assert.deepEqual(
    (["NamesAccepted", "Established", "Terminating"] as const).map((type) => isTrue(definition, type)),
    [false, true, false],
  );
  assert.deepEqual([isNamespaced(definition), isNamespaced(withStatus({}, "Cluster"))], [true, false]);
});
