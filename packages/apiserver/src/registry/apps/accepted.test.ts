/** What workloads may say and change: values next to those that rules.test.ts of each kind sees refused. */
import { testAccepted } from "../../testing/accepted.ts";

const [deployments, replicaSets, statefulSets, daemonSets] = ["deployments", "replicasets", "statefulsets", "daemonsets"].map(
  (resource) => `${resource}.apps`,
) as [string, string, string, string];
const owned = "spec.persistentVolumeClaimRetentionPolicy";
const annotation = "deprecated.daemonset.template.generation";
const negative = "must be greater than or equal to 0";
const frozen = "spec: Forbidden: updates to statefulset spec for fields other than";

testAccepted([
  {
    resource: deployments,
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
    resource: deployments,
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
    resource: deployments,
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
    resource: deployments,
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
    resource: deployments,
    name: "no count that is less than nothing",
    status: true,
    before: {},
    with: { status: { replicas: 1, readyReplicas: 1 } },
    taken: [{ "status.collisionCount": 0, "status.unavailableReplicas": 0, "status.observedGeneration": 0 }],
    refused: ["observedGeneration", "updatedReplicas", "availableReplicas", "unavailableReplicas", "collisionCount"].map(
      (field) => [{ [`status.${field}`]: -1 }, `status.${field}: Invalid value: -1: ${negative}`] as const,
    ),
  },
  {
    resource: replicaSets,
    name: "counts up to all replicas",
    status: true,
    before: {},
    taken: [{ status: { replicas: 2, fullyLabeledReplicas: 2, readyReplicas: 2, availableReplicas: 2, observedGeneration: 0 } }],
    refused: [
      [{ status: { replicas: 1, fullyLabeledReplicas: -1 } }, `status.fullyLabeledReplicas: Invalid value: -1: ${negative}`],
      [{ status: { replicas: 1, availableReplicas: -1 } }, `status.availableReplicas: Invalid value: -1: ${negative}`],
    ],
  },
  {
    resource: replicaSets,
    name: "any number of replicas and of seconds",
    taken: [{ "spec.replicas": 0 }, { "spec.replicas": 2 ** 31 - 1, "spec.minReadySeconds": 2 ** 31 - 1 }],
    refused: [[{ "spec.minReadySeconds": -1 }, `spec.minReadySeconds: Invalid value: -1: ${negative}`]],
  },
  {
    resource: replicaSets,
    name: "an equal selector and other numbers and pods",
    before: {},
    taken: [
      { "spec.selector": { matchLabels: { a: "b" }, matchExpressions: [] } },
      { "spec.replicas": 7, "spec.minReadySeconds": 7, "spec.template.spec.containers[0].image": "j" },
    ],
  },
  {
    resource: statefulSets,
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
    resource: statefulSets,
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
    resource: statefulSets,
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
    resource: statefulSets,
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
    resource: statefulSets,
    name: "without the gate the available replicas are not compared",
    gates: { StatefulSetMinReadySeconds: false },
    status: true,
    before: {},
    taken: [{ status: { replicas: 1, availableReplicas: 2 } }],
  },
  {
    resource: daemonSets,
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
    resource: daemonSets,
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
    resource: daemonSets,
    name: "a first count of collisions, unless it is negative",
    status: true,
    before: {},
    taken: [{ "status.collisionCount": 0 }],
    refused: [[{ "status.collisionCount": -1 }, `status.collisionCount: Invalid value: -1: ${negative}`]],
  },
  {
    resource: daemonSets,
    name: "each number as the generation of the template",
    taken: ["0", "-3", "+3", "007", "9223372036854775807", "-9223372036854775808"].map((value) => ({
      "metadata.annotations": { [annotation]: value },
    })),
  },
]);
