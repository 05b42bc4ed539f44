/** Contents of CustomResourceDefinitions: schemas, rules, paths. */
import assert from "node:assert/strict";
import { coerce, parseJson } from "@coxswain/apimachinery/objects/codec/json";
import { deepClone } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { CustomResourceDefinition } from "@coxswain/apimachinery/objects/schema/kinds/apiextensions/v1";
import { scheme } from "@coxswain/apimachinery/objects/schema/scheme";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { Budget, BudgetExceeded } from "@coxswain/apiserver/cel/budget";
import { compile } from "@coxswain/apiserver/cel/program";
import { parseDuration, parseTimestamp } from "@coxswain/apiserver/cel/times";
import { dyn, int, string } from "@coxswain/apiserver/cel/types";
import { PathBudget, parseJsonPath } from "@coxswain/apiserver/custom-resources/json-path";
import { strict } from "@coxswain/apiserver/registry/apiextensions/customresourcedefinitions/options";
import { validateCustomResourceDefinition } from "@coxswain/apiserver/registry/apiextensions/customresourcedefinitions/validation";
import { validateVersionSchema } from "@coxswain/apiserver/registry/apiextensions/customresourcedefinitions/version-schema";
import { fillDefaults } from "@coxswain/apiserver/structural-schema/defaults";
import { prune } from "@coxswain/apiserver/structural-schema/prune";
import { parseWordyDuration } from "@coxswain/apiserver/structural-schema/rules/durations";
import { schemaFaults } from "@coxswain/apiserver/structural-schema/values";
import { customDefinition, pod } from "../objects.ts";
import type { Target } from "../target.ts";

const definitionType = scheme.kind({
  group: "apiextensions.k8s.io",
  version: "v1",
  kind: "CustomResourceDefinition",
})!;
const words = [
  '"type":"object"',
  '"properties":{"a":',
  '"items":',
  '"x-kubernetes-preserve-unknown-fields":true',
  '"x-kubernetes-list-type":"map"',
  '"x-kubernetes-list-map-keys":["a"]',
  '"default":{}',
  '"pattern":"^a+$"',
  '"additionalProperties":',
  '"nullable":true',
  '"oneOf":[',
  '"enum":[1,"a"]',
  '"format":"date-time"',
  '"x-kubernetes-int-or-string":true',
  '"uniqueItems":true',
  '"multipleOf":0.1',
  '"not":{',
];
const schemaText =
  '{"type":"object","properties":{"a":{"type":"array","items":{"type":"string","maxLength":3,"pattern":"^a+$"},"x-kubernetes-list-type":"set"},"b":{"type":"integer","default":3,"minimum":1},"c":{"type":"object","additionalProperties":{"type":"string"}},"d":{"x-kubernetes-int-or-string":true}},"required":["a"]}';

const withSchema = (schema: unknown): CustomResourceDefinition => {
  const definition = deepClone(customDefinition) as unknown as { spec: { versions: { schema: unknown }[] } }; // cast: the copy of a definition of this file's form
  definition.spec.versions[0]!.schema = { openAPIV3Schema: schema };
  return coerce(definition, definitionType) as unknown as CustomResourceDefinition; // cast: decoded as that kind
};

const celWords = [
  "i",
  "s",
  "any",
  ".map(x, ",
  ".all(x, ",
  ".exists_one(x, ",
  "has(any.a)",
  " in ",
  "&&",
  "||",
  "? 1 : 2",
  "size(",
  "duration('1h')",
  "timestamp('2021-12-07T00:00:00Z')",
  "b'\\xff'",
  "r'\\d'",
  ".matches('a+')",
  "{'a': 1}",
  "[1, 2u, 3.0]",
  "type(",
  "9223372036854775807",
  "0x",
  "'''",
  "//",
  ".format(",
];

export const targets: readonly Target[] = [
  {
    name: "definition",
    seeds: [
      schemaText,
      '{"type":"object","x-kubernetes-validations":[{"rule":"self.a > 1","message":"m"}],"properties":{"a":{"type":"integer"}}}',
    ],
    dictionary: [...words, '"x-kubernetes-validations":[{"rule":"'],
    maxBytes: 2048,
    run(input) {
      const schema = parseJson(input);
      const definition = withSchema(schema);
      validateCustomResourceDefinition(definition);
    },
  },
  {
    name: "values",
    seeds: [`[${schemaText},{"a":["aa"],"b":null,"c":{"d":"e"},"d":"1","e":1}]`],
    dictionary: words,
    maxBytes: 2048,
    run(input) {
      const pair = parseJson(input);
      if (!Array.isArray(pair)) return;
      const schema = withSchema(pair[0]).spec.versions?.[0]?.schema?.openAPIV3Schema as never; // cast: inputs may have any form
      if (
        schema === undefined ||
        schema === null ||
        validateVersionSchema({ openAPIV3Schema: schema }, false, "", strict).length > 0
      )
        return;
      const pruned = prune(deepClone(pair[1]), schema);
      fillDefaults(pruned, schema, "refuse");
      assert.deepEqual(prune(deepClone(pruned), schema), pruned, "what is pruned stays");
      schemaFaults(pruned, schema, "");
    },
  },
  {
    name: "cel",
    seeds: [
      "i + 2 * 3 == 5 && s.startsWith('a') || any.a[0] > 1",
      "[1,2,3].map(x, x > 1, x * 2).exists(y, y == 4)",
      "duration('1h30m') + timestamp('2021-12-07T00:00:00Z') > timestamp('2020-01-01T00:00:00Z')",
      "{'a': {1: [2]}}.a[1][0] == 2 ? b'\\x00' : bytes(s)",
      "s.matches('^[a-z]+$') && string(1.5) == '1.5' && 0xFFu > 1u",
    ],
    dictionary: celWords,
    maxBytes: 500,
    declares: [BudgetExceeded],
    run(input) {
      const program = compile(
        input.toString(),
        new Map([
          ["i", int],
          ["s", string],
          ["any", dyn],
        ]),
      );
      if ("fault" in program) return;
      atOnce(
        program.evaluate(
          new Map<string, never>([
            ["i", 3n],
            ["s", "héllo 😁"],
            ["any", 3n],
          ] as never), // cast: values of the declared types
          new Budget(20_000),
        ),
      );
    },
  },
  {
    name: "cel-times",
    seeds: ["1h30m", "2021-12-07T00:00:00.123Z", "3 weeks 2 days", "-1.5us"],
    maxBytes: 200,
    run(input) {
      const text = input.toString();
      parseDuration(text);
      parseTimestamp(text);
      parseWordyDuration(text);
    },
  },
  {
    name: "json-path",
    seeds: [
      '.status.conditions[?(@.type=="Ready")].status',
      "$..name",
      ".spec.containers[*]['name','image']",
      "[0:2:1][-1]",
      ".a\\.b",
    ],
    dictionary: ["..", "[*]", "[?(@", ")]", "['", "==", "!=", "<=", "&&", "[-1:]", ".spec", "::-1", "\\."],
    maxBytes: 400,
    declares: [Error],
    run(input) {
      let path: ReturnType<typeof parseJsonPath>;
      try {
        path = parseJsonPath(input.toString());
        path(pod, new PathBudget());
      } catch (err) {
        // JsonPathError is not exported.
        if (!(err instanceof Error) || err.constructor.name !== "JsonPathError") throw err;
      }
    },
  },
];
