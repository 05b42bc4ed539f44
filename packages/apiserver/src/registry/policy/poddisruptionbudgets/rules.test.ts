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
    name: "a finalizer of any kind, and a name that is none in DNS",
    change: { "metadata.name": "A_", "metadata.finalizers": ["mine"] },
    want: [],
  },
  {
    name: "wrong metadata when the rest is right",
    change: { "metadata.annotations": { "a b": "c" } },
    want: [
      "metadata.annotations: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ],
  },
  {
    name: "a wrong number before wrong metadata",
    change: { "metadata.annotations": { "a b": "c" }, "spec.minAvailable": -1 },
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
  {
    name: "a number of pods that is none",
    change: { "spec.minAvailable": undefined, "spec.maxUnavailable": "x" },
    want: [
      "spec.maxUnavailable: Invalid value: intstr.IntOrString{Type:1, IntVal:0, StrVal:\"x\"}: a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
    ],
  },
  {
    name: "more than all pods",
    change: { "spec.minAvailable": undefined, "spec.maxUnavailable": "101%" },
    want: [
      'spec.maxUnavailable: Invalid value: intstr.IntOrString{Type:1, IntVal:0, StrVal:"101%"}: must not be greater than 100%',
    ],
  },
  {
    name: "wrong conditions",
    before: {},
    status: true,
    change: {
      "status.conditions": [
        { type: "a b", status: "Maybe", observedGeneration: -1, reason: "" },
        { type: "A", status: "True", lastTransitionTime: "2022-01-01T00:00:00Z", reason: "r r", message: "x".repeat(32769) },
        { type: "A", status: "True", lastTransitionTime: "2022-01-01T00:00:00Z", reason: "r".repeat(1025) },
      ],
    },
    want: [
      "status.conditions[0].type: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
      'status.conditions[0].status: Unsupported value: "Maybe": supported values: "False", "True", "Unknown"',
      "status.conditions[0].observedGeneration: Invalid value: -1: must be greater than or equal to 0",
      "status.conditions[0].lastTransitionTime: Required value: must be set",
      "status.conditions[0].reason: Required value: must be set",
      "status.conditions[1].reason: Invalid value: \"r r\": a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')",
      "status.conditions[1].message: Too long: must have at most 32768 bytes",
      'status.conditions[2].type: Duplicate value: "A"',
      "status.conditions[2].reason: Too long: must have at most 1024 bytes",
    ],
  },
]);
