/** Values that are accepted, next to those that rules.test.ts sees refused, and what an update may change. */
import { testAccepted } from "../../../testing/accepted.ts";

const resource = "replicasets.apps";
const negative = "must be greater than or equal to 0";

testAccepted([
  {
    resource,
    name: "counts up to all replicas",
    status: true,
    before: {},
    taken: [{ status: { replicas: 2, fullyLabeledReplicas: 2, readyReplicas: 2, availableReplicas: 2, observedGeneration: 0 } }],
    refused: [
      [{ status: { replicas: 1, fullyLabeledReplicas: -1 } }, `status.fullyLabeledReplicas: Invalid value: -1: ${negative}`],
      [{ status: { replicas: 1, availableReplicas: -1 } }, `status.availableReplicas: Invalid value: -1: ${negative}`],
      [
        { status: { replicas: 1, availableReplicas: 1 } },
        "status.availableReplicas: Invalid value: 1: cannot be greater than readyReplicas",
      ],
    ],
  },
  {
    resource,
    name: "any number of replicas and of seconds",
    taken: [{ "spec.replicas": 0 }, { "spec.replicas": 2 ** 31 - 1, "spec.minReadySeconds": 2 ** 31 - 1 }],
    refused: [[{ "spec.minReadySeconds": -1 }, `spec.minReadySeconds: Invalid value: -1: ${negative}`]],
  },
  {
    resource,
    name: "a disk that pods may write to, of one pod at most",
    with: { "spec.template.spec.volumes": [{ name: "v", gcePersistentDisk: { pdName: "d" } }] },
    taken: [{ "spec.replicas": 0 }, { "spec.replicas": 1 }],
    refused: [
      [
        { "spec.replicas": 2 },
        "spec.template.spec.volumes[0].gcePersistentDisk.readOnly: Invalid value: false: must be true for replicated pods > 1",
      ],
    ],
  },
  {
    resource,
    name: "an equal selector and other numbers and pods",
    before: {},
    taken: [
      { "spec.selector": { matchLabels: { a: "b" }, matchExpressions: [] } },
      { "spec.replicas": 7, "spec.minReadySeconds": 7, "spec.template.spec.containers[0].image": "j" },
    ],
  },
]);
