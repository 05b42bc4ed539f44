/** What the kinds of storage may say and change: values next to those that rules.test.ts of each kind sees refused. */
import { testAccepted } from "../../testing/accepted.ts";

const [drivers, nodes, capacities, classes, attachments] = [
  "csidrivers",
  "csinodes",
  "csistoragecapacities",
  "storageclasses",
  "volumeattachments",
].map((resource) => `${resource}.storage.k8s.io`) as [string, string, string, string, string];
const tokens = (...tokenRequests: object[]) => ({ "spec.tokenRequests": tokenRequests });
const lasting = (expirationSeconds: number) => tokens({ audience: "a", expirationSeconds });
const driver = (more: object) => ({ "spec.drivers": [{ name: "a", nodeID: "n", ...more }] });
const notSame = "field is immutable";
const topologies = (...list: object[][]) => ({
  allowedTopologies: list.map((matchLabelExpressions) => ({ matchLabelExpressions })),
});
const kib256 = 256 * 1024;
const sized = (bytes: number) => ({ "status.attachmentMetadata": { aa: "v".repeat(bytes - 2) } });

testAccepted([
  {
    resource: drivers,
    name: "names of drivers",
    taken: [{ "metadata.name": "a".repeat(63) }, { "metadata.name": "a.b-c.d" }],
    refused: [[{ "metadata.name": "a".repeat(64) }, "name: Too long: must have at most 63 bytes"]],
  },
  {
    resource: drivers,
    name: "policies, modes and tokens",
    taken: [
      ...["File", "None", "ReadWriteOnceWithFSType"].map((policy) => ({ "spec.fsGroupPolicy": policy })),
      { "spec.volumeLifecycleModes": ["Persistent", "Ephemeral"] },
      { "spec.attachRequired": false, "spec.podInfoOnMount": true, "spec.storageCapacity": true, "spec.requiresRepublish": true },
      lasting(600),
      lasting(2 ** 32),
      tokens({ audience: "" }, { audience: "a" }),
    ],
    refused: [
      [
        lasting(599),
        "spec.tokenRequests[0].expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes",
      ],
      [
        lasting(2 ** 32 + 1),
        "spec.tokenRequests[0].expirationSeconds: Invalid value: 4294967297: may not specify a duration larger than 2^32",
      ],
      [tokens({ audience: "a" }, {}, { audience: "" }), 'spec.tokenRequests[2].audience: Duplicate value: ""'],
      [
        { "spec.volumeLifecycleModes": ["Persistent", "Own"] },
        'spec.volumeLifecycleModes: Unsupported value: "Own": supported values: "Persistent", "Ephemeral"',
      ],
      [{ "spec.fsGroupPolicy": "" }, 'spec.fsGroupPolicy: Unsupported value: ""'],
    ],
  },
  {
    resource: drivers,
    name: "of a driver its capacity, tokens and republishing",
    before: {},
    taken: [{ "spec.storageCapacity": true }, lasting(600), { "spec.requiresRepublish": true }],
    refused: [
      [{ "spec.attachRequired": false }, `spec.attachedRequired: Invalid value: false: ${notSame}`],
      [{ "spec.podInfoOnMount": true }, `spec.podInfoOnMount: Invalid value: true: ${notSame}`],
      [{ "spec.fsGroupPolicy": "None" }, `spec.fsGroupPolicy: Invalid value: "None": ${notSame}`],
      [
        { "spec.volumeLifecycleModes": ["Ephemeral"] },
        `spec.volumeLifecycleModes: Invalid value: []storage.VolumeLifecycleMode{"Ephemeral"}: ${notSame}`,
      ],
    ],
  },
  {
    resource: nodes,
    name: "drivers with keys of topology and a number of volumes",
    taken: [
      driver({ allocatable: { count: 0 }, topologyKeys: ["a", "a.b/c", "A"] }),
      driver({ nodeID: "n".repeat(192), allocatable: {} }),
      {
        "spec.drivers": [
          { name: "a", nodeID: "n" },
          { name: "b", nodeID: "n" },
        ],
      },
    ],
    refused: [[driver({ topologyKeys: ["a", "a"] }), 'spec.drivers[0]: Duplicate value: "a"']],
  },
  {
    resource: nodes,
    name: "other drivers beside those that stay, and none of them",
    before: driver({ allocatable: { count: 1 }, topologyKeys: ["a"] }),
    taken: [{}, { "spec.drivers": [] }, { "spec.drivers[1]": { name: "b", nodeID: "m" } }],
    refused: [
      [{ "spec.drivers[0].allocatable.count": 2 }, `CSINodeDriver: Invalid value: storage.CSINodeDriver{Name:"a"`],
      [{ "spec.drivers[0].nodeID": "m" }, `CSINodeDriver: Invalid value: storage.CSINodeDriver{Name:"a"`],
      [{ "spec.drivers[0].topologyKeys": ["b"] }, `CSINodeDriver: Invalid value: storage.CSINodeDriver{Name:"a"`],
    ],
  },
  {
    resource: capacities,
    name: "amounts of nothing and more",
    taken: [{ capacity: "0" }, { capacity: "1Gi", maximumVolumeSize: "0" }, { nodeTopology: {} }, { storageClassName: "a.b" }],
    refused: [
      [{ maximumVolumeSize: "-1" }, 'maximumVolumeSize: Invalid value: "-1": must be greater than or equal to 0'],
      [{ storageClassName: "" }, 'storageClassName: Invalid value: ""'],
    ],
  },
  {
    resource: capacities,
    name: "other amounts of the same class and place",
    before: { capacity: "1Gi", nodeTopology: { matchLabels: { a: "b" } } },
    taken: [{ capacity: "2Gi" }, { capacity: undefined, maximumVolumeSize: "1" }],
    refused: [
      [{ nodeTopology: undefined }, "nodeTopology: Invalid value"],
      [{ storageClassName: "t" }, `storageClassName: Invalid value: "t": ${notSame}`],
    ],
  },
  {
    resource: classes,
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
    resource: classes,
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
    ],
  },
  {
    resource: classes,
    name: "of a class whether volumes grow and where they are",
    before: { parameters: { a: "b" }, allowVolumeExpansion: false },
    taken: [{ allowVolumeExpansion: true }, topologies([{ key: "a", values: ["b"] }]), { mountOptions: ["ro"] }],
    refused: [
      [{ parameters: { a: "c" } }, "parameters: Forbidden: updates to parameters are forbidden."],
      [{ provisioner: "a.b/d" }, "provisioner: Forbidden: updates to provisioner are forbidden."],
      [{ reclaimPolicy: "Retain" }, "reclaimPolicy: Forbidden: updates to reclaimPolicy are forbidden."],
      [{ volumeBindingMode: "WaitForFirstConsumer" }, `volumeBindingMode: Invalid value: "WaitForFirstConsumer": ${notSame}`],
    ],
  },
  {
    resource: attachments,
    name: "attachers, nodes and volumes",
    taken: [{ "spec.attacher": "a".repeat(63) }, { "spec.nodeName": "a.b" }, { "spec.source.persistentVolumeName": "a.b" }],
    refused: [
      [{ "spec.attacher": "a".repeat(64) }, "spec.attacher: Too long: must have at most 63 bytes"],
      [{ "spec.source": {} }, "spec.source: Required value: must specify exactly one of"],
      [{ "spec.nodeName": "A" }, 'spec.nodeName: Invalid value: "A"'],
    ],
  },
  {
    resource: attachments,
    name: "nothing of the spec of an attachment",
    before: {},
    taken: [{ "metadata.labels": { a: "b" } }],
    refused: [
      [{ "spec.nodeName": "m" }, "spec: Invalid value: storage.VolumeAttachmentSpec{"],
      [{ "spec.source.persistentVolumeName": "w" }, "spec: Invalid value: storage.VolumeAttachmentSpec{"],
      [{ "spec.attacher": "b" }, "spec: Invalid value: storage.VolumeAttachmentSpec{"],
    ],
  },
  {
    resource: attachments,
    name: "a status up to its limits",
    status: true,
    before: {},
    taken: [
      { "status.attachError": { message: "m".repeat(1024) } },
      { "status.detachError": { message: "m".repeat(1024) } },
      sized(kib256),
    ],
    refused: [
      [
        { "status.attachError": { message: "m".repeat(1025) } },
        "status.attachError.message: Too long: must have at most 262144 bytes",
      ],
      [
        { "status.detachError": { message: `${"m".repeat(1023)}é` } },
        "status.detachError.message: Too long: must have at most 262144 bytes",
      ],
      [sized(kib256 + 1), "status.attachmentMetadata: Too long: must have at most 262144 bytes"],
    ],
  },
]);
