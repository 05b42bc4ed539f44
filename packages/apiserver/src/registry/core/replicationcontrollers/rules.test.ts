import { testKindRules } from "../../../testing/kind-rules.ts";

testKindRules(
  "replicationcontrollers",
  {
    spec: {
      replicas: 1,
      selector: { a: "b" },
      template: { metadata: { labels: { a: "b" } }, spec: { containers: [{ name: "c", image: "i" }] } },
    },
  },
  [
    { name: "a controller", change: {}, want: [] },
    {
      name: "no template",
      change: { "spec.template": undefined, "spec.selector": {} },
      want: ["spec.selector: Required value", "spec.template: Required value"],
    },
    {
      name: "a selector by no label, which selects nothing",
      change: { "spec.selector": { "a b": "b" } },
      want: [
        'spec.template.metadata.labels: Invalid value: map[string]string{"a":"b"}: `selector` does not match template `labels`',
      ],
    },
    {
      name: "labels that are not selected, a policy, a negative number",
      change: {
        "spec.selector": { a: "c" },
        "spec.replicas": -1,
        "spec.minReadySeconds": -1,
        "spec.template.spec.restartPolicy": "Never",
      },
      want: [
        "spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0",
        "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
        'spec.template.metadata.labels: Invalid value: map[string]string{"a":"b"}: `selector` does not match template `labels`',
        'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
      ],
    },
    {
      name: "a container",
      change: { "spec.template.spec.containers[0]": { name: "c" } },
      want: ["spec.template.spec.containers[0].image: Required value"],
    },
    {
      name: "counts",
      change: {
        status: { replicas: 1, readyReplicas: 2, availableReplicas: 3, fullyLabeledReplicas: 4, observedGeneration: -1 },
      },
      before: {},
      status: true,
      want: [
        "status.observedGeneration: Invalid value: -1: must be greater than or equal to 0",
        "status.fullyLabeledReplicas: Invalid value: 4: cannot be greater than status.replicas",
        "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas",
        "status.availableReplicas: Invalid value: 3: cannot be greater than status.replicas",
        "status.availableReplicas: Invalid value: 3: cannot be greater than readyReplicas",
      ],
    },
    ...[
      { replicas: 1, readOnly: false, refused: false },
      { replicas: 2, readOnly: true, refused: false },
      { replicas: 2, readOnly: false, refused: true },
      { replicas: 2, readOnly: undefined, refused: true },
    ].map(({ replicas, readOnly, refused }) => ({
      name: `a disk whose readOnly is ${readOnly}, for ${replicas} pods`,
      change: {
        "spec.replicas": replicas,
        "spec.template.spec.volumes": [
          { name: "u", emptyDir: {} },
          { name: "v", gcePersistentDisk: { pdName: "d", ...(readOnly !== undefined && { readOnly }) } },
        ],
      },
      want: refused
        ? [
            "spec.template.spec.volumes[1].gcePersistentDisk.readOnly: Invalid value: false: must be true for replicated pods > 1; GCE PD can only be mounted on multiple machines if it is read-only",
          ]
        : [],
    })),
    {
      name: "pods that start again only when they fail",
      change: { "spec.template.spec.restartPolicy": "OnFailure" },
      want: ['spec.template.spec.restartPolicy: Unsupported value: "OnFailure": supported values: "Always"'],
    },
    {
      name: "a selector by another value of a label",
      change: { "spec.selector": { a: "c" }, "spec.replicas": undefined },
      want: [
        'spec.template.metadata.labels: Invalid value: map[string]string{"a":"b"}: `selector` does not match template `labels`',
      ],
    },
    {
      name: "a selector of more labels than the template has",
      change: { "spec.selector": { a: "b", c: "d" } },
      want: [
        'spec.template.metadata.labels: Invalid value: map[string]string{"a":"b"}: `selector` does not match template `labels`',
      ],
    },
    {
      name: "a selector of fewer labels than the template has",
      change: { "spec.template.metadata.labels": { a: "b", c: "d" }, "spec.minReadySeconds": 0, "spec.replicas": 0 },
      want: [],
    },
    {
      name: "a deadline of pods, and containers for debugging",
      change: {
        "spec.template.spec.activeDeadlineSeconds": 1,
        "spec.template.spec.ephemeralContainers": [{ name: "d", image: "i" }],
      },
      want: [
        "spec.template.spec.ephemeralContainers: Forbidden: ephemeral containers not allowed in pod template",
        "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicationController is not Supported",
      ],
    },
  ],
);
