/** Values that are accepted, next to those that rules.test.ts sees refused, and what an update may change. */
import { testAccepted } from "../../../testing/accepted.ts";

const resource = "poddisruptionbudgets.policy";
const condition = { type: "a.b/C", status: "True", lastTransitionTime: "2022-01-01T00:00:00Z", reason: "R" };
const conditions = (more: object) => ({ "status.conditions": [{ ...condition, ...more }] });

testAccepted([
  {
    resource,
    name: "numbers and shares of pods, one of the two",
    with: { "spec.minAvailable": undefined },
    taken: [
      ...[0, 2 ** 31 - 1, "0%", "100%"].flatMap((value) => [{ "spec.minAvailable": value }, { "spec.maxUnavailable": value }]),
      { "spec.selector": undefined },
      { "spec.selector": {} },
    ],
    refused: [
      [{ "spec.maxUnavailable": -1 }, "spec.maxUnavailable: Invalid value: -1: must be greater than or equal to 0"],
      [{ "spec.minAvailable": 0, "spec.maxUnavailable": 0 }, "spec: Invalid value: policy.PodDisruptionBudgetSpec{"],
    ],
  },
  {
    resource,
    name: "any other spec than before",
    before: {},
    taken: [{ "spec.minAvailable": undefined, "spec.maxUnavailable": 1 }, { "spec.selector": { matchLabels: { c: "d" } } }],
    refused: [[{ "spec.minAvailable": -1 }, "spec.minAvailable: Invalid value: -1: must be greater"]],
  },
  {
    resource,
    name: "conditions up to their limits",
    status: true,
    before: {},
    taken: [
      ...["True", "False", "Unknown"].map((status) => conditions({ status })),
      conditions({ reason: "R".repeat(1024), message: "m".repeat(32_768), observedGeneration: 0 }),
      ...["a", "A_", "a1", "A,B:c_9"].map((reason) => conditions({ reason })),
      { "status.conditions": [condition, { ...condition, type: "b" }] },
    ],
    refused: [
      ...["1a", "_a", "a,", "a:", "a b"].map(
        (reason) => [conditions({ reason }), "status.conditions[0].reason: Invalid value"] as const,
      ),
      [conditions({ reason: "R".repeat(1025) }), "status.conditions[0].reason: Too long: must have at most 1024 bytes"],
      [conditions({ message: "m".repeat(32_769) }), "status.conditions[0].message: Too long: must have at most 32768 bytes"],
      [
        { "status.conditions": [condition, { ...condition, type: "b" }, condition] },
        'status.conditions[2].type: Duplicate value: "a.b/C"',
      ],
    ],
  },
  {
    resource,
    name: "counts of nothing, and in v1beta1 of less",
    status: true,
    before: {},
    taken: [{ status: { disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 } }],
  },
  {
    resource,
    requestVersion: "v1beta1",
    name: "in v1beta1 counts of less than nothing",
    status: true,
    before: {},
    taken: [{ status: { disruptionsAllowed: -1, currentHealthy: -1, desiredHealthy: -1, expectedPods: -1 } }],
    refused: [[conditions({ status: "Maybe" }), 'status.conditions[0].status: Unsupported value: "Maybe"']],
  },
]);
