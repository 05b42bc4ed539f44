/** Values that are accepted, next to those that rules.test.ts sees refused, and what an update may change. */
import { testAccepted } from "../../../testing/accepted.ts";

const resource = "statefulsets.apps";
const owned = "spec.persistentVolumeClaimRetentionPolicy";
const frozen = "spec: Forbidden: updates to statefulset spec for fields other than";

testAccepted([
  {
    resource,
    name: "each way to manage and to update pods",
    taken: [
      { "spec.podManagementPolicy": "OrderedReady" },
      { "spec.podManagementPolicy": "Parallel" },
      { "spec.podManagementPolicy": "" },
      { "spec.updateStrategy": { type: "OnDelete" } },
      { "spec.updateStrategy": { type: "RollingUpdate" } },
      { "spec.updateStrategy": { type: "RollingUpdate", rollingUpdate: { partition: 0 } } },
      { "spec.updateStrategy": { type: "RollingUpdate", rollingUpdate: { partition: 2 ** 31 - 1 } } },
      { "spec.minReadySeconds": 0 },
    ],
  },
  {
    resource,
    name: "each way to keep claims",
    gates: { StatefulSetAutoDeletePVC: true },
    taken: [
      { [owned]: { whenDeleted: "Delete", whenScaled: "Delete" } },
      { [owned]: { whenDeleted: "Retain", whenScaled: "Retain" } },
    ],
    refused: [
      [
        { [owned]: { whenScaled: "Burn" } },
        `${owned}.whenScaled: Unsupported value: "Burn": supported values: "Retain", "Delete"`,
      ],
    ],
  },
  {
    resource,
    name: "what may change",
    gates: { StatefulSetAutoDeletePVC: true, StatefulSetMinReadySeconds: true },
    before: {},
    taken: [
      { "spec.replicas": 5 },
      { "spec.template.spec.containers[0].image": "j" },
      { "spec.updateStrategy": { type: "OnDelete" } },
      { "spec.minReadySeconds": 5 },
      { [owned]: { whenDeleted: "Delete", whenScaled: "Delete" } },
    ],
    refused: [
      [{ "spec.podManagementPolicy": "Parallel" }, frozen],
      [{ "spec.revisionHistoryLimit": 5 }, frozen],
      [{ "spec.serviceName": "other" }, frozen],
      [{ "spec.volumeClaimTemplates": [{ metadata: { name: "v" }, spec: {} }] }, frozen],
      [{ "spec.selector.matchLabels": { a: "b", c: "d" }, "spec.template.metadata.labels": { a: "b", c: "d" } }, frozen],
    ],
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
          readyReplicas: 2,
          currentReplicas: 2,
          updatedReplicas: 2,
          availableReplicas: 2,
          observedGeneration: 0,
          collisionCount: 2,
        },
      },
      { status: { replicas: 2, readyReplicas: 1, availableReplicas: 1, collisionCount: 3 } },
    ],
    refused: [
      [
        { status: { replicas: 2, readyReplicas: 1, availableReplicas: 2, collisionCount: 2 } },
        "status.availableReplicas: Invalid value: 2: cannot be greater than status.readyReplicas",
      ],
      [{ "status.collisionCount": undefined }, "status.collisionCount: Invalid value: 0: cannot be decremented"],
    ],
  },
  {
    resource,
    name: "without the gate the available replicas are not compared",
    gates: { StatefulSetMinReadySeconds: false },
    status: true,
    before: {},
    taken: [{ status: { replicas: 1, availableReplicas: 2 } }],
  },
]);
