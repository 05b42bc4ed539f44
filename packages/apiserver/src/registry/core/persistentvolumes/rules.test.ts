import { testKindRules } from "../../../testing/kind-rules.ts";

const csi = (secret: string | undefined): object => ({
  ...{ driver: "d", volumeHandle: "h" },
  ...(secret !== undefined && { controllerExpandSecretRef: { name: secret, namespace: "n" } }),
});
const sourceImmutable = "spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation";
const affinity = { required: { nodeSelectorTerms: [{ matchExpressions: [{ key: "a", operator: "Exists" }] }] } };

testKindRules(
  "persistentvolumes",
  { spec: { capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"], hostPath: { path: "/x" } } },
  [
    { name: "a host path", change: {}, want: [] },
    {
      name: "nothing in it",
      change: { spec: {} },
      want: [
        "spec.accessModes: Required value",
        "spec.capacity: Required value",
        'spec.capacity: Unsupported value: core.ResourceList(nil): supported values: "storage"',
        "spec: Required value: must specify a volume type",
      ],
    },
    {
      name: "an unknown access mode",
      change: { "spec.accessModes": ["ReadSome"] },
      want: [
        'spec.accessModes: Unsupported value: "ReadSome": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce"',
      ],
    },
    {
      name: "an access mode of a gate that is off",
      change: { "spec.accessModes": ["ReadWriteOncePod"] },
      want: [
        'spec.accessModes: Unsupported value: "ReadWriteOncePod": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce"',
      ],
    },
    {
      name: "other capacities than storage, and none of it",
      change: { "spec.capacity": { cpu: "0", storage: "-1" } },
      want: [
        'spec.capacity: Unsupported value: core.ResourceList{"cpu":resource.Quantity{i:resource.int64Amount{value:0, scale:0}, d:resource.infDecAmount{Dec:(*inf.Dec)(nil)}, s:"0", Format:"DecimalSI"}, "storage":resource.Quantity{i:resource.int64Amount{value:-1, scale:0}, d:resource.infDecAmount{Dec:(*inf.Dec)(nil)}, s:"-1", Format:"DecimalSI"}}: supported values: "storage"',
        'spec.capacity[cpu]: Invalid value: "0": must be greater than zero',
        "spec.capacity[storage]: Invalid value: -1: must be a valid resource quantity",
        'spec.capacity[storage]: Invalid value: "-1": must be greater than zero',
      ],
    },
    {
      name: "a reclaim policy",
      change: { "spec.persistentVolumeReclaimPolicy": "Forget" },
      want: ['spec.persistentVolumeReclaimPolicy: Unsupported value: "Forget": supported values: "Delete", "Recycle", "Retain"'],
    },
    {
      name: "to empty the whole machine, in other words",
      change: { "spec.hostPath": { path: "/a/..", type: "" }, "spec.persistentVolumeReclaimPolicy": "Recycle" },
      want: [
        "spec.hostPath.path: Invalid value: \"/a/..\": must not contain '..'",
        "spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'",
      ],
    },
    {
      name: "a second source",
      change: { "spec.nfs": { server: "s", path: "/p" } },
      want: ["spec.nfs: Forbidden: may not specify more than 1 volume type"],
    },
    {
      name: "a flex volume as second source, which alone is checked nevertheless",
      change: { "spec.flexVolume": { driver: "" }, "spec.local": { path: "/x" } },
      want: ["spec.flexVolume.driver: Required value", "spec.local: Forbidden: may not specify more than 1 volume type"],
    },
    {
      name: "a local volume without affinity",
      change: { "spec.hostPath": undefined, "spec.local": { path: "/x" } },
      want: ["spec.nodeAffinity: Required value: Local volume requires node affinity"],
    },
    {
      name: "affinity without terms",
      change: { "spec.nodeAffinity": {} },
      want: ["spec.nodeAffinity.required: Required value: must specify required node constraints"],
    },
    {
      name: "recycling of the host's root",
      change: { "spec.hostPath.path": "/", "spec.persistentVolumeReclaimPolicy": "Recycle" },
      want: ["spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'"],
    },
    {
      name: "a class and a mode",
      change: { "spec.storageClassName": "_", "spec.volumeMode": "Tape" },
      want: [
        "spec.storageClassName: Invalid value: \"_\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        'spec.volumeMode: Unsupported value: "Tape": supported values: "Block", "Filesystem"',
      ],
    },
    {
      name: "a driver without handle",
      change: { "spec.hostPath": undefined, "spec.csi": { driver: "", volumeHandle: "", nodeStageSecretRef: { name: "a" } } },
      want: [
        "spec.csi.driver: Required value",
        "spec.csi.driver: Invalid value: \"\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        "spec.csi.volumeHandle: Required value",
      ],
    },
    {
      name: "other sources of what is wrong",
      change: { "spec.hostPath": undefined, "spec.nfs": { server: "", path: "x" } },
      want: ["spec.nfs.server: Required value", 'spec.nfs.path: Invalid value: "x": must be an absolute path'],
    },
    {
      name: "another source",
      change: { "spec.hostPath": { path: "/y" } },
      before: {},
      want: ["spec.persistentvolumesource: Forbidden: spec.persistentvolumesource is immutable after creation"],
    },
    {
      name: "another mode",
      change: { "spec.volumeMode": "Block" },
      before: {},
      want: ['volumeMode: Invalid value: "Block": field is immutable'],
    },
    {
      name: "another size and policy",
      change: { "spec.capacity": { storage: "2Gi" }, "spec.persistentVolumeReclaimPolicy": "Delete" },
      before: {},
      want: [],
    },
    { name: "a phase only", change: { "status.phase": "Bound" }, before: {}, status: true, want: [] },
    {
      name: "affinity to no node",
      change: { "spec.nodeAffinity": { required: { nodeSelectorTerms: [] } } },
      want: ["spec.nodeAffinity.required.nodeSelectorTerms: Required value: must have at least one node selector term"],
    },
    {
      name: "another affinity",
      change: {
        "spec.nodeAffinity": {
          required: { nodeSelectorTerms: [{ matchFields: [{ key: "metadata.name", operator: "In", values: ["b"] }] }] },
        },
      },
      before: {
        "spec.nodeAffinity": {
          required: { nodeSelectorTerms: [{ matchFields: [{ key: "metadata.name", operator: "In", values: ["a"] }] }] },
        },
      },
      want: [
        "nodeAffinity: Invalid value: core.VolumeNodeAffinity{Required:(*core.NodeSelector)(0xc000000000)}: field is immutable",
      ],
    },
    {
      name: "an access mode, which it may keep neither",
      before: { "spec.accessModes": ["x"] },
      change: {},
      want: ['spec.accessModes: Unsupported value: "x": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce"'],
    },
    ...[
      { name: "a first secret to expand with", old: undefined, next: "a", want: [] },
      { name: "the same secret to expand with", old: "a", next: "a", want: [] },
      { name: "another secret to expand with", old: "a", next: "b", want: [sourceImmutable] },
      { name: "no secret to expand with any more", old: "a", next: undefined, want: [sourceImmutable] },
    ].map(({ name, old, next, want }) => ({
      name,
      gates: { ExpandCSIVolumes: true },
      before: { "spec.hostPath": undefined, "spec.csi": csi(old) },
      change: { "spec.csi": csi(next) },
      want,
    })),
    {
      name: "another handle, with a first secret to expand with",
      before: { "spec.hostPath": undefined, "spec.csi": csi(undefined) },
      change: { "spec.csi": { ...csi("a"), volumeHandle: "other" } },
      want: [sourceImmutable],
    },
    {
      name: "one pod at most, as before, without the gate",
      before: { "spec.accessModes": ["ReadWriteOncePod"] },
      change: { "metadata.labels": { a: "b" } },
      want: [],
    },
    { name: "a first affinity to nodes", before: {}, change: { "spec.nodeAffinity": affinity }, want: [] },
    {
      name: "no affinity to nodes any more",
      before: { "spec.nodeAffinity": affinity },
      change: { "spec.nodeAffinity": undefined },
      want: ['nodeAffinity: Invalid value: "null": field is immutable'],
    },
    {
      name: "a local volume on its nodes, of a class with dots, to be recycled",
      change: {
        "spec.hostPath": undefined,
        "spec.local": { path: "/" },
        "spec.nodeAffinity": affinity,
        "spec.storageClassName": "a.b",
        "spec.persistentVolumeReclaimPolicy": "Recycle",
        "spec.volumeMode": "Block",
      },
      want: [],
    },
    {
      name: "an empty policy that was not defaulted",
      undefaulted: true,
      change: { "spec.persistentVolumeReclaimPolicy": "" },
      want: [],
    },
    ...["Retain", "Delete"].map((policy) => ({
      name: `the host's root with the policy ${policy}`,
      change: { "spec.hostPath.path": "/", "spec.persistentVolumeReclaimPolicy": policy },
      want: [],
    })),
    {
      name: "another path of the host to be recycled",
      change: { "spec.hostPath.path": "/a/", "spec.persistentVolumeReclaimPolicy": "Recycle" },
      want: [],
    },
    {
      name: "an access mode for one pod beside another",
      gates: { ReadWriteOncePod: true },
      change: { "spec.accessModes": ["ReadOnlyMany", "ReadWriteOncePod"] },
      want: ["spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"],
    },
  ],
);
