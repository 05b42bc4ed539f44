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
  ],
);
