/** Values that are accepted, next to those that rules.test.ts sees refused, and what an update may change. */
import { testAccepted } from "../../../testing/accepted.ts";

const resource = "priorityclasses.scheduling.k8s.io";
const reserved = "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error:";

testAccepted([
  {
    resource,
    name: "values and policies",
    taken: [
      { value: 0 },
      { value: 1_000_000_000 },
      { value: -(2 ** 31) },
      ...["PreemptLowerPriority", "Never"].map((preemptionPolicy) => ({ preemptionPolicy })),
      { globalDefault: true },
      { "metadata.name": "systems", value: 1 },
    ],
    refused: [
      [{ value: 1_000_000_001 }, "value: Forbidden: maximum allowed value of a user defined priority is 1000000000"],
      [{ preemptionPolicy: "" }, "preemptionPolicy: Required value"],
    ],
  },
  {
    resource,
    name: "the classes of the system with their values",
    taken: [
      { "metadata.name": "system-node-critical", value: 2_000_001_000 },
      { "metadata.name": "system-cluster-critical", value: 2_000_000_000 },
    ],
    refused: [
      [
        { "metadata.name": "system-node-critical", value: 2_000_000_000 },
        `${reserved} value of system-node-critical PriorityClass must be 2000001000`,
      ],
      [
        { "metadata.name": "system-other", value: 2_000_000_000 },
        `${reserved} system-other is not a known system priority class`,
      ],
      [
        { "metadata.name": "system-cluster-critical", value: 2_000_000_000, globalDefault: true },
        `${reserved} globalDefault of system-cluster-critical PriorityClass must be false`,
      ],
    ],
  },
  {
    resource,
    name: "of a class its description and whether it is the default",
    before: {},
    taken: [{ description: "d" }, { globalDefault: true }],
    refused: [
      [{ value: 6 }, "value: Forbidden: may not be changed in an update."],
      [{ value: undefined }, "value: Forbidden: may not be changed in an update."],
      [{ preemptionPolicy: "Never" }, 'preemptionPolicy: Invalid value: "Never": field is immutable'],
    ],
  },
]);
