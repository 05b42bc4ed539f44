import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "@coxswain/apimachinery/testing/fast-check";
import { escapeName, unescapeName } from "./escaping.ts";

for (const [name, identifier] of [
  ["plain", "plain"],
  ["a-b.c/d", "a__dash__b__dot__c__slash__d"],
  ["a__b", "a__underscores__b"],
  ["_a_", "_a_"],
  ["namespace", "__namespace__"],
  ["namespaces", "namespaces"],
  ["int", "int"],
  ["", undefined],
  ["1st", undefined],
  ["$ref", undefined],
  ["é", undefined],
] as const) {
  test(`the name ${JSON.stringify(name)} is ${identifier ?? "none that a rule can use"}`, () =>
    assert.equal(escapeName(name), identifier));
}

for (const identifier of ["__nothing__", "a__namespace__", "__namespace__a"]) {
  test(`${identifier} stands for no name`, () => assert.equal(unescapeName(identifier), undefined));
}

test("every name that has an identifier is found by it", () => {
  const name = fc.string({ unit: fc.constantFrom(..."ab_-./"), minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(name, (each) => {
      const identifier = escapeName(each);
      assert.match(identifier ?? "", /^[a-zA-Z_][a-zA-Z0-9_]*$/);
      assert.equal(unescapeName(identifier as string), each);
    }),
  );
});
