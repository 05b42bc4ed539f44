import { testKindRules } from "../../../testing/kind-rules.ts";

testKindRules("leases.coordination.k8s.io", {}, [
  { name: "a lease", change: {}, want: [] },
  {
    name: "numbers",
    change: { spec: { leaseDurationSeconds: 0, leaseTransitions: -1 } },
    want: [
      "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
      "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
    ],
  },
  {
    name: "no time, later",
    before: {},
    change: { "spec.leaseDurationSeconds": 0 },
    want: ["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"],
  },
]);
