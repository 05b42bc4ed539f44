import { testKindRules } from "../../../testing/kind-rules.ts";

const classAnnotation = "volume.beta.kubernetes.io/storage-class";
const classOf = (name: string): object => ({ [classAnnotation]: name });
const classChanged = (name: string): string =>
  `metadata.annotations.${classAnnotation}: Invalid value: "${name}": field is immutable`;
const immutable = "spec: Forbidden: spec is immutable after creation except resources.requests for bound claims";
const bound = { "spec.volumeName": "v", "status.phase": "Bound", "status.capacity": { storage: "1Gi" } };

testKindRules(
  "persistentvolumeclaims",
  { spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } } },
  [
    { name: "a claim", change: {}, want: [] },
    {
      name: "nothing in it",
      change: { spec: {} },
      want: ["spec.accessModes: Required value: at least 1 access mode is required", "spec.resources[storage]: Required value"],
    },
    {
      name: "an access mode, class, mode and selector",
      change: {
        "spec.accessModes": ["x"],
        "spec.storageClassName": "_",
        "spec.volumeMode": "Tape",
        "spec.selector": { matchLabels: { "a b": "c" } },
      },
      want: [
        "spec.selector.matchLabels: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        'spec.accessModes: Unsupported value: "x": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce"',
        "spec.storageClassName: Invalid value: \"_\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        'spec.volumeMode: Unsupported value: "Tape": supported values: "Block", "Filesystem"',
      ],
    },
    {
      name: "an amount of nothing",
      change: { "spec.resources.requests": { storage: "0" } },
      want: ['spec.resources[storage]: Invalid value: "0": must be greater than zero'],
    },
    { name: "a source of nothing", change: { "spec.dataSource": { kind: "", name: "" } }, want: [] },
    { name: "a source of core that is no claim", change: { "spec.dataSource": { kind: "Pod", name: "a" } }, want: [] },
    {
      name: "another class",
      change: { "spec.storageClassName": "t" },
      before: { "spec.volumeName": "v", "spec.storageClassName": "s", "status.phase": "Bound" },
      want: [immutable],
    },
    {
      name: "a larger bound claim",
      change: { "spec.resources.requests.storage": "2Gi" },
      before: { "spec.volumeName": "v", "spec.storageClassName": "s", "status.phase": "Bound" },
      want: [],
    },
    {
      name: "a larger claim that is not bound",
      change: { "spec.resources.requests.storage": "2Gi" },
      before: {},
      want: [immutable],
    },
    {
      name: "a smaller claim",
      change: { "spec.resources.requests.storage": "1Mi" },
      before: { "spec.volumeName": "v", "spec.storageClassName": "s", "status.phase": "Bound" },
      want: ["spec.resources.requests.storage: Forbidden: field can not be less than previous value"],
    },
    {
      name: "a request of something else than storage",
      change: { "spec.resources": { requests: { cpu: "1" }, limits: { storage: "1Gi" } } },
      want: ["spec.resources[storage]: Required value"],
    },
    {
      name: "a status of growing that is none, without its gate, where there was one",
      status: true,
      before: { ...bound, "status.resizeStatus": "NodeExpansionPending", "status.allocatedResources": { storage: "1Gi" } },
      change: { "status.resizeStatus": "Soon", "status.allocatedResources": { cpu: "-1" } },
      want: [],
    },
    {
      name: "another mode of use",
      change: { "spec.volumeMode": "Block" },
      before: {},
      want: [immutable, 'volumeMode: Invalid value: "Block": field is immutable'],
    },
    { name: "a volume", change: { "spec.volumeName": "v" }, before: {}, want: [] },
    {
      name: "a status without size",
      change: { "status.capacity": { storage: "-1" } },
      before: {},
      status: true,
      want: ["status.capacity[storage]: Invalid value: -1: must be a valid resource quantity"],
    },
    {
      name: "one pod at most, and many",
      gates: { ReadWriteOncePod: true },
      change: { "spec.accessModes": ["ReadWriteOncePod", "ReadWriteMany"] },
      want: ["spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"],
    },
    {
      name: "a status of what has no access modes",
      status: true,
      before: { "spec.accessModes": [] },
      change: { "status.phase": "Bound" },
      want: ["Spec.accessModes: Required value"],
    },
    {
      name: "an update of what was wrong already",
      before: { "spec.volumeMode": "Tape" },
      change: {},
      want: ['spec.volumeMode: Unsupported value: "Tape": supported values: "Block", "Filesystem"'],
    },
    {
      name: "less than it had requested, and more than it has, of a volume that would not grow",
      gates: { RecoverVolumeExpansionFailure: true },
      before: { ...bound, "spec.resources.requests.storage": "5Gi" },
      change: { "spec.resources.requests.storage": "2Gi" },
      want: [],
    },
    {
      name: "no more than it has, although less may be requested",
      gates: { RecoverVolumeExpansionFailure: true },
      before: { ...bound, "spec.resources.requests.storage": "5Gi" },
      change: { "spec.resources.requests.storage": "1Gi" },
      want: ["spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"],
    },
    {
      name: "a status that says how expansion proceeds",
      gates: { RecoverVolumeExpansionFailure: true },
      status: true,
      before: bound,
      change: { "status.resizeStatus": "NodeExpansionPending", "status.allocatedResources": { storage: "2Gi" } },
      want: [],
    },
    {
      name: "a status of growing that is none",
      gates: { RecoverVolumeExpansionFailure: true },
      status: true,
      before: bound,
      change: { "status.resizeStatus": "Soon", "status.allocatedResources": { storage: "-1", cpu: "1" } },
      want: [
        'status.resizeStatus: Unsupported value: "Soon": supported values: "", "ControllerExpansionFailed", "ControllerExpansionInProgress", "NodeExpansionFailed", "NodeExpansionInProgress", "NodeExpansionPending"',
        "status.allocatedResources[storage]: Invalid value: -1: must be a valid resource quantity",
        'status.allocatedResources: Unsupported value: "cpu": supported values: "storage"',
      ],
    },
    {
      name: "a status of growing that is not looked at without its gate",
      status: true,
      before: bound,
      change: { "status.resizeStatus": "Soon", "status.allocatedResources": { cpu: "1" } },
      want: [],
    },
    {
      name: "another class in the annotation",
      before: {},
      change: { "metadata.annotations": { "volume.beta.kubernetes.io/storage-class": "a" } },
      want: ['metadata.annotations.volume.beta.kubernetes.io/storage-class: Invalid value: "a": field is immutable'],
    },
    {
      name: "many pods, and one pod at most",
      gates: { ReadWriteOncePod: true },
      change: { "spec.accessModes": ["ReadWriteMany", "ReadWriteOncePod"] },
      want: ["spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"],
    },
    {
      name: "every mode but that of one pod",
      change: { "spec.accessModes": ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany"], "spec.storageClassName": "a.b" },
      want: [],
    },
    {
      name: "one pod at most, as before, without the gate",
      before: { "spec.accessModes": ["ReadWriteOncePod"] },
      change: { "metadata.labels": { a: "b" } },
      want: [],
    },
    {
      name: "one pod at most, without the gate",
      change: { "spec.accessModes": ["ReadWriteOncePod"] },
      want: [
        'spec.accessModes: Unsupported value: "ReadWriteOncePod": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce"',
      ],
    },
    ...["", undefined].map((apiGroup) => ({
      name: `a source of ${apiGroup === "" ? "an empty" : "no"} group that is no claim`,
      gates: { AnyVolumeDataSource: true },
      change: { "spec.dataSourceRef": { kind: "Pod", name: "a", ...(apiGroup !== undefined && { apiGroup }) } },
      want: ["dataSource", "dataSourceRef"].map((field) => `spec.${field}: Invalid value: "Pod"`),
    })),
    {
      name: "a source of nothing with the gate",
      gates: { AnyVolumeDataSource: true },
      change: { "spec.dataSourceRef": { kind: "", name: "" } },
      want: ["dataSource", "dataSourceRef"].flatMap((field) => [
        `spec.${field}.name: Required value`,
        `spec.${field}.kind: Required value`,
        `spec.${field}: Invalid value: ""`,
      ]),
    },
    {
      name: "a smaller claim without the gate",
      gates: { ExpandPersistentVolumes: false },
      before: bound,
      change: { "spec.resources.requests.storage": "1Mi" },
      want: ["spec: Forbidden: field is immutable after creation"],
    },
    {
      name: "a status of no resources that are allocated",
      gates: { RecoverVolumeExpansionFailure: true },
      status: true,
      before: bound,
      change: { "status.allocatedResources": { storage: "0" } },
      want: [],
    },
    {
      name: "a volume where its name was empty",
      before: { "spec.volumeName": "" },
      change: { "spec.volumeName": "v" },
      want: [],
    },
    {
      name: "another volume",
      before: bound,
      change: { "spec.volumeName": "w" },
      want: [immutable],
    },
    {
      name: "no volume any more",
      before: bound,
      change: { "spec.volumeName": undefined },
      want: [immutable],
    },
    ...[
      { name: "the class of the annotation, beside it", annotations: classOf("a"), want: [] },
      { name: "the class of the annotation, instead of it", annotations: undefined, want: [] },
      {
        name: "the class of the annotation, beside another one",
        annotations: classOf("b"),
        want: [classChanged("b"), immutable],
      },
    ].map(({ name, annotations, want }) => ({
      name,
      before: { "metadata.annotations": classOf("a") },
      change: { "metadata.annotations": annotations, "spec.storageClassName": "a" },
      want,
    })),
    {
      name: "another class than that of the annotation",
      before: { "metadata.annotations": classOf("a") },
      change: { "spec.storageClassName": "b" },
      want: [immutable],
    },
    {
      name: "the class of the annotation where there was another one",
      before: { "metadata.annotations": classOf("a"), "spec.storageClassName": "b" },
      change: { "spec.storageClassName": "a" },
      want: [immutable],
    },
    {
      name: "the class of the annotation as before",
      before: { "metadata.annotations": classOf("a"), "spec.storageClassName": "a" },
      change: { "metadata.labels": { a: "b" } },
      want: [],
    },
    {
      name: "no class in the annotation any more",
      before: { "metadata.annotations": classOf("a") },
      change: { "metadata.annotations": undefined },
      want: [classChanged("")],
    },
    {
      name: "an annotation of no class",
      before: {},
      change: { "metadata.annotations": classOf("") },
      want: [],
    },
    { name: "the same size of a bound claim", before: bound, change: { "metadata.labels": { a: "b" } }, want: [] },
    {
      name: "a larger bound claim, and other requests",
      before: bound,
      change: { "spec.resources.requests": { storage: "2Gi", cpu: "1" } },
      want: [immutable],
    },
    {
      name: "a larger bound claim without the gate",
      gates: { ExpandPersistentVolumes: false },
      before: bound,
      change: { "spec.resources.requests.storage": "2Gi" },
      want: ["spec: Forbidden: field is immutable after creation"],
    },
    {
      name: "no capacity and a resize status of each kind",
      gates: { RecoverVolumeExpansionFailure: true },
      status: true,
      before: bound,
      change: { "status.capacity": { storage: "0" }, "status.resizeStatus": "ControllerExpansionInProgress" },
      want: [],
    },
  ],
);
