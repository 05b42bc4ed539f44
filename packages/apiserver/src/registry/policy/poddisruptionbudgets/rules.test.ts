import { testKindRules } from "../../../testing/kind-rules.ts";

testKindRules("poddisruptionbudgets.policy", { spec: { minAvailable: 1, selector: { matchLabels: { a: "b" } } } }, [
  { name: "a budget", change: {}, want: [] },
  {
    name: "both",
    change: { "spec.maxUnavailable": 1 },
    want: [
      "spec: Invalid value: policy.PodDisruptionBudgetSpec{MinAvailable:(*intstr.IntOrString)(0xc000000000), Selector:(*v1.LabelSelector)(0xc000000000), MaxUnavailable:(*intstr.IntOrString)(0xc000000000)}: minAvailable and maxUnavailable cannot be both set",
    ],
  },
  {
    name: "a negative number",
    change: { "spec.minAvailable": -1 },
    want: ["spec.minAvailable: Invalid value: -1: must be greater than or equal to 0"],
  },
  {
    name: "more than all",
    change: { "spec.minAvailable": "101%" },
    want: [
      'spec.minAvailable: Invalid value: intstr.IntOrString{Type:1, IntVal:0, StrVal:"101%"}: must not be greater than 100%',
    ],
  },
  {
    name: "no percentage",
    change: { "spec.minAvailable": "x" },
    want: [
      "spec.minAvailable: Invalid value: intstr.IntOrString{Type:1, IntVal:0, StrVal:\"x\"}: a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
    ],
  },
  {
    name: "a selector",
    change: { "spec.selector": { matchLabels: { "a b": "c" } } },
    want: [
      "spec.selector.matchLabels: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  },
  {
    name: "counts",
    change: { status: { disruptionsAllowed: -1, currentHealthy: -1, desiredHealthy: -1, expectedPods: -1 } },
    before: {},
    status: true,
    want: [
      "status.disruptionsAllowed: Invalid value: -1: must be greater than or equal to 0",
      "status.currentHealthy: Invalid value: -1: must be greater than or equal to 0",
      "status.desiredHealthy: Invalid value: -1: must be greater than or equal to 0",
      "status.expectedPods: Invalid value: -1: must be greater than or equal to 0",
    ],
  },
]);
