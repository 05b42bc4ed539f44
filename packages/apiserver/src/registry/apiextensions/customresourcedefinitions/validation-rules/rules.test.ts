import assert from "node:assert/strict";
import { test } from "node:test";
import { formatFieldError } from "@coxswain/apimachinery/errors/field-error";
import type { ValidationRule } from "@coxswain/apimachinery/schema/kinds/apiextensions/v1";
import { validateRules } from "./rules.ts";

const path = "openAPIV3Schema.x-kubernetes-validations[0]";

const cases: readonly { rule: ValidationRule; want: readonly string[] }[] = [
  { rule: { rule: "self > 1", message: "too few" }, want: [] },
  { rule: { rule: " \n" }, want: [`${path}.rule: Required value: rule is not specified`] },
  {
    rule: { rule: "self > 1", message: " " },
    want: [`${path}.message: Invalid value: " ": message must be non-empty if specified`],
  },
  {
    rule: { rule: "self > 1", message: "too\nfew" },
    want: [`${path}.message: Invalid value: "too\\nfew": message must not contain line breaks`],
  },
  {
    rule: { rule: "self > 1\n&& self < 9" },
    want: [`${path}.message: Required value: message must be specified if rule contains line breaks`],
  },
  {
    rule: { rule: "self + 1" },
    want: [
      `${path}.rule: Invalid value: apiextensions.ValidationRule{Rule:"self + 1", Message:""}: cel expression must evaluate to a bool`,
    ],
  },
];

for (const { rule, want } of cases) {
  test(`the rule ${JSON.stringify(rule)} of a number is ${want.length === 0 ? "taken" : "refused"}`, () => {
    const schema = { type: "integer", "x-kubernetes-validations": [rule] };
    const faults = validateRules(schema, "openAPIV3Schema", false, true);
    assert.deepEqual(faults.map(formatFieldError), want);
  });
}

test("rules of a schema that does not say what its values are, are not compiled", () => {
  assert.deepEqual(validateRules({ "x-kubernetes-validations": [{ rule: "self +" }] }, "openAPIV3Schema", false, false), []);
});
