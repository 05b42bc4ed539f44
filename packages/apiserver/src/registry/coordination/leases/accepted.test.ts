/** Values that are accepted, next to those that rules.test.ts sees refused, and what an update may change. */
import { testAccepted } from "../../../testing/accepted.ts";

const resource = "leases.coordination.k8s.io";

testAccepted([
  {
    resource,
    name: "numbers",
    taken: [{ "spec.leaseDurationSeconds": 1, "spec.leaseTransitions": 0 }, { "spec.holderIdentity": "" }],
    refused: [
      [{ "spec.leaseDurationSeconds": 0 }, "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"],
      [{ "spec.leaseTransitions": -1 }, "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0"],
    ],
  },
  {
    resource,
    name: "numbers that become less",
    before: { "spec.leaseDurationSeconds": 9, "spec.leaseTransitions": 9 },
    taken: [{ "spec.leaseDurationSeconds": 1, "spec.leaseTransitions": 0 }],
    refused: [[{ "spec.leaseTransitions": -1 }, "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0"]],
  },
]);
