import { testKindRules } from "../../../testing/kind-rules.ts";

testKindRules("priorityclasses.scheduling.k8s.io", { value: 1 }, [
  { name: "a class", change: {}, want: [] },
  {
    name: "a value that is the system's",
    change: { value: 1000000001 },
    want: ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"],
  },
  {
    name: "a name that is the system's",
    change: { "metadata.name": "system-mine" },
    want: [
      "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: system-mine is not a known system priority class",
    ],
  },
  {
    name: "a policy",
    change: { preemptionPolicy: "Sometimes" },
    want: ['preemptionPolicy: Unsupported value: "Sometimes": supported values: "PreemptLowerPriority", "Never"'],
  },
  { name: "another value", change: { value: 2 }, before: {}, want: ["value: Forbidden: may not be changed in an update."] },
  {
    name: "another policy",
    change: { preemptionPolicy: "Never" },
    before: {},
    want: ['preemptionPolicy: Invalid value: "Never": field is immutable'],
  },
  {
    name: "another value of the system's",
    change: { "metadata.name": "system-node-critical", value: 5 },
    want: [
      "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: value of system-node-critical PriorityClass must be 2000001000",
    ],
  },
  {
    name: "the system's for everybody",
    change: { "metadata.name": "system-node-critical", value: 2000001000, globalDefault: true },
    want: [
      "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: globalDefault of system-node-critical PriorityClass must be false",
    ],
  },
]);
