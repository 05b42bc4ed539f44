/** Values of affinities, tolerations and spreads that are just taken, and those next to them that are refused. */
import { goStruct } from "@coxswain/apimachinery/objects/schema/go/go-print";
import { testKindRules } from "../../../../testing/kind-rules.ts";

const labelValueText =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const small = { spec: { containers: [{ name: "c", image: "i" }] } };
const scheduling = "DuringSchedulingIgnoredDuringExecution";
const nodeTerms = (...matchExpressions: object[]): Record<string, unknown> => ({
  "spec.affinity": { nodeAffinity: { [`required${scheduling}`]: { nodeSelectorTerms: [{ matchExpressions }] } } },
});
const expressionsAt = `spec.affinity.nodeAffinity.required${scheduling}.nodeSelectorTerms[0].matchExpressions`;
const badTerm = { topologyKey: "" };
const keyErrors = (at: string): string[] => [
  `${at}.topologyKey: Required value: can not be empty`,
  `${at}.topologyKey: Invalid value: "": name part must be non-empty`,
  `${at}.topologyKey: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
];

testKindRules("pods", small, [
  {
    name: "expressions for nodes with as many values as each operator takes",
    change: nodeTerms(
      { key: "a", operator: "In", values: ["1", "2"] },
      { key: "a", operator: "NotIn", values: ["1"] },
      { key: "a", operator: "Exists" },
      { key: "a", operator: "DoesNotExist", values: [] },
      { key: "a", operator: "Gt", values: ["1"] },
      { key: "a", operator: "Lt", values: ["1"] },
    ),
    want: [],
  },
  {
    name: "expressions for nodes with too few and too many values",
    change: nodeTerms(
      { key: "a", operator: "NotIn", values: [] },
      { key: "a", operator: "DoesNotExist", values: ["1"] },
      { key: "a", operator: "Gt" },
      { key: "a", operator: "Lt" },
      { key: "a", operator: "Lt", values: ["1", "2"] },
    ),
    want: [
      `${expressionsAt}[0].values: Required value: must be specified when \`operator\` is 'In' or 'NotIn'`,
      `${expressionsAt}[1].values: Forbidden: may not be specified when \`operator\` is 'Exists' or 'DoesNotExist'`,
      ...[2, 3, 4].map(
        (i) => `${expressionsAt}[${i}].values: Required value: must be specified single value when \`operator\` is 'Lt' or 'Gt'`,
      ),
    ],
  },
  {
    name: "all nodes but one, by name",
    change: {
      "spec.affinity": {
        nodeAffinity: {
          [`required${scheduling}`]: {
            nodeSelectorTerms: [{ matchFields: [{ key: "metadata.name", operator: "NotIn", values: ["a"] }] }],
          },
        },
      },
    },
    want: [],
  },
  {
    name: "terms against pods, second ones, that are none",
    change: {
      "spec.affinity": {
        podAntiAffinity: {
          [`required${scheduling}`]: [{ topologyKey: "zone" }, badTerm],
          [`preferred${scheduling}`]: [
            { weight: 1, podAffinityTerm: { topologyKey: "zone" } },
            { weight: 100, podAffinityTerm: badTerm },
          ],
        },
      },
    },
    want: [
      ...keyErrors(`spec.affinity.podAntiAffinity.required${scheduling}[1]`),
      ...keyErrors(`spec.affinity.podAntiAffinity.preferred${scheduling}[1].podAffinityTerm`),
    ],
  },
  {
    name: "a topology key with both actions",
    change: {
      "spec.topologySpreadConstraints": ["DoNotSchedule", "ScheduleAnyway"].map((whenUnsatisfiable) => ({
        maxSkew: 1,
        topologyKey: "zone",
        whenUnsatisfiable,
      })),
    },
    want: [],
  },
  {
    name: "tolerations of everything, of each effect, and for a time",
    change: {
      "spec.tolerations": [
        { operator: "Exists" },
        { key: "a", value: "b", effect: "NoSchedule" },
        { key: "a", operator: "Equal", effect: "PreferNoSchedule" },
        { key: "a", operator: "Exists", effect: "NoExecute", tolerationSeconds: 0 },
      ],
    },
    want: [],
  },
  {
    name: "a toleration for a time of every effect, and one without an operator of a wrong value",
    change: {
      "spec.tolerations": [{ key: "a", operator: "Exists", tolerationSeconds: 0 }, { key: "a", value: "b c" }, { value: "b" }],
    },
    want: [
      "spec.tolerations[0].effect: Invalid value: \"\": effect must be 'NoExecute' when `tolerationSeconds` is set",
      `spec.tolerations[1].operator: Invalid value: "b c": ${labelValueText}`,
      'spec.tolerations[2].operator: Invalid value: "": operator must be Exists when `key` is empty, which means "match all values and all keys"',
    ],
  },
  {
    name: "a toleration of a pod that has its node",
    change: { "spec.nodeName": "n", "spec.tolerations": [{ key: "a", operator: "Gt" }] },
    want: ['spec.tolerations[0].operator: Unsupported value: "Gt": supported values: "Equal", "Exists"'],
  },
  {
    name: "a field of nodes without values, and a spread of no skew",
    change: {
      "spec.affinity": {
        nodeAffinity: {
          [`required${scheduling}`]: { nodeSelectorTerms: [{ matchFields: [{ key: "metadata.name", operator: "In" }] }] },
        },
      },
      "spec.topologySpreadConstraints": [{ topologyKey: "zone", whenUnsatisfiable: "DoNotSchedule" }],
    },
    want: [
      `spec.affinity.nodeAffinity.required${scheduling}.nodeSelectorTerms[0].matchFields[0].values: Required value: must be only one value when \`operator\` is 'In' or 'NotIn' for node field selector`,
      "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
    ],
  },
  {
    name: "tolerations of every key with a value, and of an unknown effect for a time",
    change: {
      "spec.tolerations": [
        { operator: "Exists", value: "x" },
        { key: "a", operator: "Exists", effect: "Never", tolerationSeconds: 1 },
      ],
    },
    want: [
      `spec.tolerations[0].operator: Invalid value: ${goStruct("core/v1.Toleration", { operator: "Exists", value: "x" }).text}: value must be empty when \`operator\` is 'Exists'`,
      "spec.tolerations[1].effect: Invalid value: \"Never\": effect must be 'NoExecute' when `tolerationSeconds` is set",
      'spec.tolerations[1].effect: Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
    ],
  },
  {
    name: "tolerations of the annotation of a pod that has its node, and an empty annotation of them",
    change: {
      "spec.nodeName": "n",
      "metadata.annotations": { "scheduler.alpha.kubernetes.io/tolerations": '[{"key":"a","operator":"Gt"}]' },
    },
    want: [
      'metadata.annotations.scheduler.alpha.kubernetes.io/tolerations[0].operator: Unsupported value: "Gt": supported values: "Equal", "Exists"',
    ],
  },
  {
    name: "an empty annotation of tolerations",
    change: { "metadata.annotations": { "scheduler.alpha.kubernetes.io/tolerations": "" } },
    want: [],
  },
]);
