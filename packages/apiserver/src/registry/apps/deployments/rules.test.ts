import { testKindRules } from "../../../testing/kind-rules.ts";

testKindRules(
  "deployments.apps",
  {
    spec: {
      selector: { matchLabels: { a: "b" } },
      template: { metadata: { labels: { a: "b" } }, spec: { containers: [{ name: "c", image: "i" }] } },
    },
  },
  [
    { name: "a deployment", change: {}, want: [] },
    {
      name: "nothing in it",
      change: { spec: {} },
      want: [
        "spec.selector: Required value",
        "spec.template.metadata.labels: Invalid value: map[string]string(nil): `selector` does not match template `labels`",
        "spec.template.spec.containers: Required value",
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
      name: "an empty selector",
      change: { "spec.selector": {} },
      want: [
        "spec.selector: Invalid value: v1.LabelSelector{MatchLabels:map[string]string(nil), MatchExpressions:[]v1.LabelSelectorRequirement(nil)}: empty selector is invalid for deployment",
      ],
    },
    {
      name: "numbers",
      change: {
        "spec.replicas": -1,
        "spec.minReadySeconds": -1,
        "spec.revisionHistoryLimit": -1,
        "spec.progressDeadlineSeconds": -1,
      },
      want: [
        "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
        "spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0",
        "spec.revisionHistoryLimit: Invalid value: -1: must be greater than or equal to 0",
        "spec.progressDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0",
        "spec.progressDeadlineSeconds: Invalid value: -1: must be greater than minReadySeconds",
      ],
    },
    {
      name: "a deadline before the pods are ready",
      change: { "spec.minReadySeconds": 700 },
      want: ["spec.progressDeadlineSeconds: Invalid value: 600: must be greater than minReadySeconds"],
    },
    {
      name: "an unknown strategy",
      change: { "spec.strategy": { type: "Slow" } },
      want: [
        'spec.strategy: Unsupported value: apps.DeploymentStrategy{Type:"Slow", RollingUpdate:(*apps.RollingUpdateDeployment)(nil)}: supported values: "Recreate", "RollingUpdate"',
      ],
    },
    {
      name: "numbers of recreation",
      change: { "spec.strategy": { type: "Recreate", rollingUpdate: { maxSurge: 1 } } },
      want: ["spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"],
    },
    {
      name: "a rolling update that cannot move",
      change: { "spec.strategy": { type: "RollingUpdate", rollingUpdate: { maxSurge: 0, maxUnavailable: "0%" } } },
      want: [
        'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: intstr.IntOrString{Type:1, IntVal:0, StrVal:"0%"}: may not be 0 when `maxSurge` is 0',
      ],
    },
    {
      name: "wrong steps of a rolling update",
      change: { "spec.strategy": { type: "RollingUpdate", rollingUpdate: { maxSurge: "x", maxUnavailable: "101%" } } },
      want: [
        "spec.strategy.rollingUpdate.maxSurge: Invalid value: intstr.IntOrString{Type:1, IntVal:0, StrVal:\"x\"}: a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
        'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: intstr.IntOrString{Type:1, IntVal:0, StrVal:"101%"}: must not be greater than 100%',
      ],
    },
    {
      name: "pods that end",
      change: { "spec.template.spec.restartPolicy": "OnFailure", "spec.template.spec.activeDeadlineSeconds": 5 },
      want: [
        'spec.template.spec.restartPolicy: Unsupported value: "OnFailure": supported values: "Always"',
        "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported",
      ],
    },
    {
      name: "a container",
      change: { "spec.template.spec.containers[0]": { name: "c" } },
      want: ["spec.template.spec.containers[0].image: Required value"],
    },
    {
      name: "another selector",
      change: { "spec.selector": { matchLabels: { a: "c" } }, "spec.template.metadata.labels": { a: "c" } },
      before: {},
      want: [
        'spec.selector: Invalid value: v1.LabelSelector{MatchLabels:map[string]string{"a":"c"}, MatchExpressions:[]v1.LabelSelectorRequirement(nil)}: field is immutable',
      ],
    },
    {
      name: "counts",
      change: {
        status: {
          observedGeneration: -1,
          replicas: 1,
          updatedReplicas: 2,
          readyReplicas: 2,
          availableReplicas: 3,
          unavailableReplicas: -1,
          collisionCount: 1,
        },
      },
      before: { "status.collisionCount": 2 },
      status: true,
      want: [
        "status.observedGeneration: Invalid value: -1: must be greater than or equal to 0",
        "status.unavailableReplicas: Invalid value: -1: must be greater than or equal to 0",
        "status.updatedReplicas: Invalid value: 2: cannot be greater than status.replicas",
        "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas",
        "status.availableReplicas: Invalid value: 3: cannot be greater than status.replicas",
        "status.availableReplicas: Invalid value: 3: cannot be greater than readyReplicas",
        "status.collisionCount: Invalid value: 1: cannot be decremented",
      ],
    },
    {
      name: "numbers of a rolling update",
      change: { "spec.strategy": { type: "RollingUpdate", rollingUpdate: { maxUnavailable: -1, maxSurge: "a" } } },
      want: [
        "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: -1: must be greater than or equal to 0",
        "spec.strategy.rollingUpdate.maxSurge: Invalid value: intstr.IntOrString{Type:1, IntVal:0, StrVal:\"a\"}: a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
      ],
    },
    {
      name: "pods with containers for debugging and a deadline",
      change: {
        "spec.template.spec.ephemeralContainers": [{ name: "d", image: "i" }],
        "spec.template.spec.activeDeadlineSeconds": 5,
      },
      want: [
        "spec.template.spec.ephemeralContainers: Forbidden: ephemeral containers not allowed in pod template",
        "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported",
      ],
    },
    {
      name: "a disk that many write to",
      change: { "spec.replicas": 2, "spec.template.spec.volumes": [{ name: "v", gcePersistentDisk: { pdName: "p" } }] },
      want: [
        "spec.template.spec.volumes[0].gcePersistentDisk.readOnly: Invalid value: false: must be true for replicated pods > 1; GCE PD can only be mounted on multiple machines if it is read-only",
      ],
    },
    {
      name: "a rolling update without steps",
      undefaulted: true,
      change: { "spec.template.spec.containers": [], "spec.strategy": { type: "RollingUpdate" } },
      want: [
        "spec.template.spec.containers: Required value",
        "spec.template.spec.restartPolicy: Required value",
        "spec.template.spec.dnsPolicy: Required value",
        'spec.template.spec.restartPolicy: Unsupported value: "": supported values: "Always"',
        "spec.strategy.rollingUpdate: Required value: this should be defaulted and never be nil",
      ],
    },
    {
      name: "a negative count of collisions",
      status: true,
      before: {},
      change: { "status.collisionCount": -1 },
      want: ["status.collisionCount: Invalid value: -1: must be greater than or equal to 0"],
    },
  ],
);
