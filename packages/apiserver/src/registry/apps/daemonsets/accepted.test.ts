/** Values that are accepted, next to those that rules.test.ts sees refused, and what an update may change. */
import { testAccepted } from "../../../testing/accepted.ts";

const resource = "daemonsets.apps";
const annotation = "deprecated.daemonset.template.generation";
const negative = "must be greater than or equal to 0";

testAccepted([
  {
    resource,
    name: "each strategy",
    taken: [
      { "spec.updateStrategy": { type: "OnDelete" } },
      { "spec.updateStrategy": { type: "OnDelete", rollingUpdate: { maxUnavailable: 0 } } },
      { "spec.updateStrategy.rollingUpdate": { maxUnavailable: "100%", maxSurge: 0 } },
      { "spec.updateStrategy.rollingUpdate": { maxUnavailable: "0%", maxSurge: "100%" } },
      { "spec.updateStrategy.rollingUpdate": { maxUnavailable: 0, maxSurge: 5 } },
    ],
  },
  {
    resource,
    name: "counts of nothing, and of collisions not fewer than before",
    status: true,
    before: { "status.collisionCount": 2 },
    taken: [
      {
        status: {
          currentNumberScheduled: 0,
          numberMisscheduled: 0,
          desiredNumberScheduled: 0,
          numberReady: 0,
          collisionCount: 2,
        },
      },
      { "status.collisionCount": 3, "status.numberAvailable": 9 },
    ],
    refused: [[{ "status.collisionCount": undefined }, "status.collisionCount: Invalid value: 0: cannot be decremented"]],
  },
  {
    resource,
    name: "a first count of collisions, unless it is negative",
    status: true,
    before: {},
    taken: [{ "status.collisionCount": 0 }],
    refused: [[{ "status.collisionCount": -1 }, `status.collisionCount: Invalid value: -1: ${negative}`]],
  },
  {
    resource,
    name: "each number as the generation of the template",
    taken: ["0", "-3", "+3", "007", "9223372036854775807", "-9223372036854775808"].map((value) => ({
      "metadata.annotations": { [annotation]: value },
    })),
  },
]);
