import { testKindRules } from "../../../testing/kind-rules.ts";

testKindRules(
  "volumeattachments.storage.k8s.io",
  { spec: { attacher: "a", nodeName: "n", source: { persistentVolumeName: "v" } } },
  [
    { name: "an attachment", change: {}, want: [] },
    {
      name: "nothing in it",
      change: { spec: { attacher: "", nodeName: "", source: {} } },
      want: [
        "spec.attacher: Required value",
        "spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName",
        "spec.nodeName: Invalid value: \"\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        "spec.attacher: Required value",
        "spec.attacher: Invalid value: \"\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      ],
    },
    {
      name: "another node",
      change: { "spec.nodeName": "m" },
      before: {},
      want: [
        'spec: Invalid value: storage.VolumeAttachmentSpec{Attacher:"a", Source:storage.VolumeAttachmentSource{PersistentVolumeName:(*string)(0xc000000000), InlineVolumeSpec:(*core.PersistentVolumeSpec)(nil)}, NodeName:"m"}: field is immutable',
      ],
    },

    {
      name: "a name that no attacher has",
      change: { "spec.attacher": "a b" },
      want: [
        "spec.attacher: Invalid value: \"a b\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      ],
    },
    {
      name: "another one of a name that no new attacher may have",
      before: { "spec.attacher": "a b" },
      change: { "spec.attacher": "a b", "metadata.labels": { a: "b" } },
      want: [],
    },
    {
      name: "a volume of no name",
      change: { "spec.source.persistentVolumeName": "" },
      want: [
        "spec.source.persistentVolumeName: Required value: must specify non empty persistentVolumeName",
        "spec.source.persistentVolumeName: Invalid value: \"\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      ],
    },
    {
      name: "a volume of a strange name",
      change: { "spec.source.persistentVolumeName": "_" },
      want: [
        "spec.source.persistentVolumeName: Invalid value: \"_\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      ],
    },
    {
      name: "two sources, one of which has no name",
      undefaulted: true,
      change: { "spec.source": { inlineVolumeSpec: {}, persistentVolumeName: "" } },
      want: [
        "spec.source: Forbidden: must specify exactly one of inlineVolumeSpec and persistentVolumeName",
        "spec.source.persistentVolumeName: Invalid value: \"\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      ],
    },
    {
      name: "two sources",
      change: { "spec.source.inlineVolumeSpec": {} },
      want: ["spec.source: Forbidden: must specify exactly one of inlineVolumeSpec and persistentVolumeName"],
    },
    {
      name: "a volume in the attachment",
      change: {
        "spec.source": { inlineVolumeSpec: { accessModes: ["ReadWriteOnce"], csi: { driver: "d", volumeHandle: "h" } } },
      },
      want: [],
    },
    {
      name: "a volume in the attachment that is more than that",
      change: {
        "spec.source": {
          inlineVolumeSpec: {
            capacity: { storage: "1Gi" },
            claimRef: { name: "c" },
            hostPath: { path: "/x" },
            nodeAffinity: { required: { nodeSelectorTerms: [] } },
            persistentVolumeReclaimPolicy: "Delete",
            storageClassName: "s",
            volumeMode: "Block",
          },
        },
      },
      want: [
        "spec.source.inlineVolumeSpec.claimRef: Forbidden: may not be specified in the context of inline volumes",
        "spec.source.inlineVolumeSpec.capacity: Forbidden: may not be specified in the context of inline volumes",
        "spec.source.inlineVolumeSpec.csi: Required value: has to be specified in the context of inline volumes",
        "spec.source.inlineVolumeSpec.accessModes: Required value",
        "spec.source.inlineVolumeSpec.persistentVolumeReclaimPolicy: Forbidden: may only be Retain in the context of inline volumes",
        "spec.source.inlineVolumeSpec.nodeAffinity: Forbidden: may not be specified in the context of inline volumes",
        "spec.source.inlineVolumeSpec.storageClassName: Forbidden: may not be specified in the context of inline volumes",
        "spec.source.inlineVolumeSpec.volumeMode: Forbidden: may not specify volumeMode other than Filesystem in the context of inline volumes",
      ],
    },
    {
      name: "a volume in the attachment that says nothing",
      change: { "spec.source": { inlineVolumeSpec: { volumeMode: "Filesystem" } } },
      want: [
        "spec.source.inlineVolumeSpec.csi: Required value: has to be specified in the context of inline volumes",
        "spec.source.inlineVolumeSpec.accessModes: Required value",
        "spec.source.inlineVolumeSpec: Required value: must specify a volume type",
      ],
    },
    {
      name: "the status of a successful attach",
      status: true,
      before: {},
      change: { status: { attached: true, attachmentMetadata: { device: "/dev/sda" } } },
      want: [],
    },
    {
      name: "nameless metadata and long messages",
      status: true,
      before: {},
      change: {
        status: {
          attached: false,
          attachmentMetadata: { "": "x" },
          attachError: { message: "m".repeat(1025) },
          detachError: { message: "m".repeat(1025) },
        },
      },
      want: [
        'status.attachmentMetadata: Invalid value: "": field can not be empty.',
        "status.attachError.message: Too long: must have at most 262144 bytes",
        "status.detachError.message: Too long: must have at most 262144 bytes",
      ],
    },
    {
      name: "metadata beyond all measure",
      status: true,
      before: {},
      change: { "status.attachmentMetadata": { a: "x".repeat(256 * 1024) } },
      want: ["status.attachmentMetadata: Too long: must have at most 262144 bytes"],
    },
    {
      name: "no node, which it did not have before",
      before: { "spec.nodeName": "" },
      change: {},
      want: [
        "spec.nodeName: Invalid value: \"\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      ],
    },
    {
      name: "an inline volume with an invalid access mode",
      change: { "spec.source": { inlineVolumeSpec: { accessModes: ["x"], csi: { driver: "d", volumeHandle: "h" } } } },
      want: [
        'spec.source.inlineVolumeSpec.accessModes: Unsupported value: "x": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce"',
      ],
    },
  ],
);
