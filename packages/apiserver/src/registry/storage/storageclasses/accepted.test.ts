/** Values that are accepted, next to those that rules.test.ts sees refused, and what an update may change. */
import { testAccepted } from "../../../testing/accepted.ts";

const resource = "storageclasses.storage.k8s.io";
const notSame = "field is immutable";
const topologies = (...list: object[][]) => ({
  allowedTopologies: list.map((matchLabelExpressions) => ({ matchLabelExpressions })),
});

testAccepted([
  {
    resource,
    name: "provisioners, policies and modes",
    taken: [
      ...["a", "A.b/C", "kubernetes.io/gce-pd"].map((provisioner) => ({ provisioner })),
      ...["Delete", "Retain", ""].map((reclaimPolicy) => ({ reclaimPolicy })),
      ...["Immediate", "WaitForFirstConsumer"].map((volumeBindingMode) => ({ volumeBindingMode })),
      { parameters: { a: "" } },
    ],
    refused: [
      [{ reclaimPolicy: "Recycle" }, 'reclaimPolicy: Unsupported value: "Recycle": supported values: "Delete", "Retain"'],
      [
        { volumeBindingMode: "Later" },
        'volumeBindingMode: Unsupported value: "Later": supported values: "Immediate", "WaitForFirstConsumer"',
      ],
      [{ parameters: { "": "a" } }, 'parameters: Invalid value: "": field can not be empty.'],
    ],
  },
  {
    resource,
    name: "places that differ",
    taken: [
      topologies([{ key: "a", values: ["b"] }], [{ key: "a", values: ["b", "c"] }], [{ key: "d", values: ["b"] }]),
      topologies(
        [
          { key: "a", values: ["b"] },
          { key: "c", values: ["b"] },
        ],
        [{ key: "a", values: ["b"] }],
      ),
    ],
    refused: [
      [
        topologies([{ key: "a", values: ["b", "c"] }], [{ key: "a", values: ["c", "b"] }]),
        'allowedTopologies[1].matchLabelExpressions: Duplicate value: ""',
      ],
      [
        topologies([{ key: "a", values: ["b", "b"] }]),
        'allowedTopologies[0].matchLabelExpressions[0].values[1]: Duplicate value: "b"',
      ],
      [topologies([]), 'allowedTopologies[0].matchLabelExpressions: Duplicate value: ""'],
    ],
  },
  {
    resource,
    name: "of a class whether volumes grow and where they are",
    before: { parameters: { a: "b" }, allowVolumeExpansion: false },
    taken: [{ allowVolumeExpansion: true }, topologies([{ key: "a", values: ["b"] }]), { mountOptions: ["ro"] }],
    refused: [
      [{ parameters: { a: "c" } }, "parameters: Forbidden: updates to parameters are forbidden."],
      [{ provisioner: "a.b/d" }, "provisioner: Forbidden: updates to provisioner are forbidden."],
      [{ reclaimPolicy: "Retain" }, "reclaimPolicy: Forbidden: updates to reclaimPolicy are forbidden."],
      [{ reclaimPolicy: "" }, "reclaimPolicy: Forbidden: updates to reclaimPolicy are forbidden."],
      [{ volumeBindingMode: "WaitForFirstConsumer" }, `volumeBindingMode: Invalid value: "WaitForFirstConsumer": ${notSame}`],
    ],
  },
]);
