import { testKindRules } from "../../../testing/kind-rules.ts";
import { wrongExpressions } from "../../../testing/selector-cases.ts";

testKindRules(
  "statefulsets.apps",
  {
    spec: {
      selector: { matchLabels: { a: "b" } },
      template: { metadata: { labels: { a: "b" } }, spec: { containers: [{ name: "c", image: "i" }] } },
      serviceName: "s",
    },
  },
  [
    {
      name: "a set, with containers that mount its claims",
      change: {
        "spec.volumeClaimTemplates": [{ metadata: { name: "v" }, spec: {} }],
        "spec.template.spec.containers[0].volumeMounts": [{ name: "v", mountPath: "/v" }],
      },
      want: [],
    },
    {
      name: "nothing in it",
      change: { spec: {} },
      want: [
        "spec.selector: Required value",
        "spec.template.metadata.labels: Invalid value: map[string]string(nil): `selector` does not match template `labels`",
      ],
    },
    {
      name: "unknown policies",
      change: { "spec.podManagementPolicy": "Wild", "spec.updateStrategy": { type: "Slow" } },
      want: [
        "spec.podManagementPolicy: Invalid value: \"Wild\": must be 'OrderedReady' or 'Parallel'",
        "spec.updateStrategy: Invalid value: apps.StatefulSetUpdateStrategy{Type:\"Slow\", RollingUpdate:(*apps.RollingUpdateStatefulSetStrategy)(nil)}: must be 'RollingUpdate' or 'OnDelete'",
      ],
    },
    {
      name: "a partition of deletion",
      change: { "spec.updateStrategy": { type: "OnDelete", rollingUpdate: { partition: 1 } } },
      want: [
        `spec.updateStrategy.rollingUpdate: Invalid value: apps.RollingUpdateStatefulSetStrategy{Partition:1}: only allowed for updateStrategy 'RollingUpdate'`,
      ],
    },
    {
      name: "numbers",
      change: {
        "spec.replicas": -1,
        "spec.minReadySeconds": -1,
        "spec.updateStrategy": { type: "RollingUpdate", rollingUpdate: { partition: -1 } },
      },
      want: [
        "spec.updateStrategy.rollingUpdate.partition: Invalid value: -1: must be greater than or equal to 0",
        "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
        "spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0",
      ],
    },
    {
      name: "labels that are not selected",
      change: { "spec.selector": { matchLabels: { a: "c" } } },
      want: [
        'spec.template.metadata.labels: Invalid value: map[string]string{"a":"b"}: `selector` does not match template `labels`',
      ],
    },
    {
      name: "pods that end",
      change: { "spec.template.spec.restartPolicy": "Never", "spec.template.spec.activeDeadlineSeconds": 5 },
      want: [
        'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
        "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in StatefulSet is not Supported",
      ],
    },
    {
      name: "another service",
      change: { "spec.serviceName": "t" },
      before: {},
      want: [
        "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'template', 'updateStrategy', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
      ],
    },
    {
      name: "more replicas and another template",
      change: { "spec.replicas": 3, "spec.template.metadata.annotations": { x: "y" } },
      before: {},
      want: [],
    },
    {
      name: "counts",
      change: {
        status: {
          replicas: 1,
          readyReplicas: 2,
          currentReplicas: 2,
          updatedReplicas: 2,
          observedGeneration: -1,
          collisionCount: -1,
        },
      },
      before: {},
      status: true,
      want: [
        "status.observedGeneration: Invalid value: -1: must be greater than or equal to 0",
        "status.collisionCount: Invalid value: -1: must be greater than or equal to 0",
        "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas",
        "status.currentReplicas: Invalid value: 2: cannot be greater than status.replicas",
        "status.updatedReplicas: Invalid value: 2: cannot be greater than status.replicas",
      ],
    },
    {
      name: "an unknown way of keeping claims",
      gates: { StatefulSetAutoDeletePVC: true },
      change: { "spec.persistentVolumeClaimRetentionPolicy": { whenDeleted: "Burn", whenScaled: "Retain" } },
      want: [
        'spec.persistentVolumeClaimRetentionPolicy.whenDeleted: Unsupported value: "Burn": supported values: "Retain", "Delete"',
      ],
    },
    {
      name: "counts",
      status: true,
      before: {},
      change: { status: { replicas: -1, readyReplicas: -1, currentReplicas: -1, updatedReplicas: -1, availableReplicas: -1 } },
      want: [
        "status.replicas: Invalid value: -1: must be greater than or equal to 0",
        "status.readyReplicas: Invalid value: -1: must be greater than or equal to 0",
        "status.currentReplicas: Invalid value: -1: must be greater than or equal to 0",
        "status.updatedReplicas: Invalid value: -1: must be greater than or equal to 0",
        "status.availableReplicas: Invalid value: -1: must be greater than or equal to 0",
      ],
    },
    {
      name: "neither pod management nor update strategy",
      undefaulted: true,
      change: { "spec.template.spec.restartPolicy": "Always" },
      want: ["spec.podManagementPolicy: Required value", "spec.updateStrategy: Required value"],
    },
    {
      name: "a template with wrong labels and annotations",
      change: {
        "spec.template.metadata.labels": { a: "b", "a b": "c" },
        "spec.template.metadata.annotations": { "a b": "c", "container.seccomp.security.alpha.kubernetes.io/c": "x" },
      },
      want: [
        "spec.template.labels: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        "spec.template.annotations: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        'spec.template.annotations.container.seccomp.security.alpha.kubernetes.io/c: Invalid value: "x": must be a valid seccomp profile',
      ],
    },
    {
      name: "a selector of wrong expressions, with a look at no more than how long pods run",
      change: {
        "spec.selector": wrongExpressions.selector,
        "spec.template.metadata.labels": { "a b": "c" },
        "spec.template.spec.restartPolicy": "Never",
      },
      want: [
        ...wrongExpressions.want("spec.selector"),
        `spec.selector: Invalid value: ${wrongExpressions.shown}`,
        'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
      ],
    },
    {
      name: "less than nothing",
      status: true,
      before: {},
      change: { status: { replicas: -1 } },
      want: [
        "status.replicas: Invalid value: -1: must be greater than or equal to 0",
        "status.readyReplicas: Invalid value: 0: cannot be greater than status.replicas",
        "status.currentReplicas: Invalid value: 0: cannot be greater than status.replicas",
        "status.updatedReplicas: Invalid value: 0: cannot be greater than status.replicas",
        "status.availableReplicas: Invalid value: 0: cannot be greater than status.replicas",
      ],
    },
    {
      name: "more available than ready, and a collision taken back",
      status: true,
      before: { "status.collisionCount": 2 },
      change: { "status.replicas": 1, "status.availableReplicas": 2, "status.collisionCount": 1 },
      want: [
        "status.availableReplicas: Invalid value: 2: cannot be greater than status.replicas",
        "status.availableReplicas: Invalid value: 2: cannot be greater than status.readyReplicas",
        "status.collisionCount: Invalid value: 1: cannot be decremented",
      ],
    },
  ],
);
