import assert from "node:assert/strict";
import { test } from "node:test";
import { formatFieldError } from "@coxswain/apimachinery/objects/errors/field-error";
import type { ValidationRule } from "@coxswain/apimachinery/objects/schema/kinds/apiextensions/v1";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { type CompiledRule, compileAhead, compileRules, validateRules } from "./rules.ts";

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
    rule: { rule: "self > 1", message: "too\rfew" },
    want: [`${path}.message: Invalid value: "too\\rfew": message must not contain line breaks`],
  },
  { rule: { rule: "\nself > 1\n", message: "\ntoo few\n" }, want: [] },
  { rule: { rule: "self > 1\n" }, want: [] },
  { rule: { rule: "rule > 1" }, want: [] },
  { rule: { rule: "self > 1\n&& self < 9", message: "not so" }, want: [] },
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

test("a rule is compiled once where it stands, as that of a resource or of a value, and anew when it is another one", () => {
  const schema = { type: "object", "x-kubernetes-validations": [{ rule: "has(self.kind)" }] };
  const faultOf = ({ program }: CompiledRule): string => (program !== undefined && "fault" in program ? program.fault : "");
  const [ofResource] = compileRules(schema, true);
  const [ofValue] = compileRules(schema, false);
  assert.equal(faultOf(ofResource as CompiledRule), "");
  assert.match(faultOf(ofValue as CompiledRule), /undefined field 'kind'/);
  assert.equal(compileRules(schema as never, true)[0], ofResource);
  schema["x-kubernetes-validations"] = [{ rule: "has(self.other)" }];
  assert.match(faultOf(compileRules(schema, true)[0] as CompiledRule), /undefined field 'other'/);
});

test("rules are compiled ahead in every version, also behind one without a schema", async () => {
  let reads = 0;
  const rule = {
    get rule() {
      reads++;
      return "self > 1";
    },
  };
  const count = { type: "integer", "x-kubernetes-validations": [rule] };
  const ofResource = {
    get rule() {
      reads++;
      return "self.kind != ''";
    },
  };
  const root = {
    ...{ type: "object", properties: { spec: { type: "object", properties: { count } } } },
    "x-kubernetes-validations": [ofResource],
  };
  const versions = [{ name: "v1" }, { name: "v2", schema: { openAPIV3Schema: root } }];
  await compileAhead(new Turns(), { spec: { versions } } as never);
  assert.notEqual(reads, 0);
  const before = reads;
  compileRules(count, false);
  compileRules(root, true);
  assert.equal(reads, before, "compiled already");
});
