/** Values that are accepted, next to those that rules.test.ts sees refused, and what an update may change. */
import { testAccepted } from "../../../testing/accepted.ts";

const resource = "deployments.apps";
const negative = "must be greater than or equal to 0";

testAccepted([
  {
    resource,
    name: "each strategy",
    taken: [
      { "spec.strategy": { type: "Recreate" } },
      { "spec.strategy": { type: "RollingUpdate", rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } } },
      { "spec.strategy": { type: "RollingUpdate", rollingUpdate: { maxSurge: 0, maxUnavailable: "1%" } } },
      { "spec.strategy": { type: "RollingUpdate", rollingUpdate: { maxSurge: "200%", maxUnavailable: "100%" } } },
      { "spec.strategy.type": "" },
    ],
  },
  {
    resource,
    name: "a deadline after the pods are ready",
    taken: [
      { "spec.progressDeadlineSeconds": 1 },
      { "spec.progressDeadlineSeconds": 6, "spec.minReadySeconds": 5 },
      { "spec.progressDeadlineSeconds": 1, "spec.minReadySeconds": 0 },
    ],
    refused: [
      [
        { "spec.progressDeadlineSeconds": 0 },
        "spec.progressDeadlineSeconds: Invalid value: 0: must be greater than minReadySeconds",
      ],
      [
        { "spec.progressDeadlineSeconds": 5, "spec.minReadySeconds": 5 },
        "spec.progressDeadlineSeconds: Invalid value: 5: must be greater than minReadySeconds",
      ],
    ],
  },
  {
    resource,
    name: "no deadline at all, which only a stored deployment has",
    undefaulted: true,
    with: {
      "spec.template.spec": {
        containers: [{ name: "c", image: "i", terminationMessagePolicy: "File", imagePullPolicy: "Always" }],
        restartPolicy: "Always",
        dnsPolicy: "Default",
      },
      "spec.strategy": { type: "Recreate" },
    },
    taken: [{ "spec.minReadySeconds": 5 }, { "spec.progressDeadlineSeconds": null }],
  },
  {
    resource,
    name: "counts up to all replicas, and of collisions not fewer than before",
    status: true,
    before: { "status.collisionCount": 2 },
    taken: [
      {
        status: {
          replicas: 2,
          updatedReplicas: 2,
          readyReplicas: 2,
          availableReplicas: 2,
          unavailableReplicas: 9,
          collisionCount: 2,
        },
      },
      {
        status: {
          replicas: 2,
          updatedReplicas: 0,
          readyReplicas: 1,
          availableReplicas: 1,
          observedGeneration: 0,
          collisionCount: 3,
        },
      },
    ],
    refused: [
      [{ "status.collisionCount": undefined }, "status.collisionCount: Invalid value: 0: cannot be decremented"],
      [
        { status: { replicas: 2, readyReplicas: 1, availableReplicas: 2, collisionCount: 2 } },
        "status.availableReplicas: Invalid value: 2: cannot be greater than readyReplicas",
      ],
    ],
  },
  {
    resource,
    name: "no count that is less than nothing",
    status: true,
    before: {},
    with: { status: { replicas: 1, readyReplicas: 1 } },
    taken: [{ "status.collisionCount": 0, "status.unavailableReplicas": 0, "status.observedGeneration": 0 }],
    refused: ["observedGeneration", "updatedReplicas", "availableReplicas", "unavailableReplicas", "collisionCount"].map(
      (field) => [{ [`status.${field}`]: -1 }, `status.${field}: Invalid value: -1: ${negative}`] as const,
    ),
  },
]);
