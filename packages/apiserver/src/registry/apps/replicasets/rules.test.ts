import { testKindRules } from "../../../testing/kind-rules.ts";
import { wrongExpressions } from "../../../testing/selector-cases.ts";

testKindRules(
  "replicasets.apps",
  {
    spec: {
      selector: { matchLabels: { a: "b" } },
      template: { metadata: { labels: { a: "b" } }, spec: { containers: [{ name: "c", image: "i" }] } },
    },
  },
  [
    { name: "a set", change: {}, want: [] },
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
      name: "labels that are not selected, and numbers",
      change: { "spec.selector": { matchLabels: { a: "c" } }, "spec.replicas": -1, "spec.minReadySeconds": -1 },
      want: [
        "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
        "spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0",
        'spec.template.metadata.labels: Invalid value: map[string]string{"a":"b"}: `selector` does not match template `labels`',
      ],
    },
    {
      name: "pods that end",
      change: { "spec.template.spec.restartPolicy": "Never" },
      want: ['spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"'],
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
        status: { replicas: 1, fullyLabeledReplicas: 2, readyReplicas: 2, availableReplicas: 3, observedGeneration: -1 },
      },
      before: {},
      status: true,
      want: [
        "status.observedGeneration: Invalid value: -1: must be greater than or equal to 0",
        "status.fullyLabeledReplicas: Invalid value: 2: cannot be greater than status.replicas",
        "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas",
        "status.availableReplicas: Invalid value: 3: cannot be greater than status.replicas",
        "status.availableReplicas: Invalid value: 3: cannot be greater than readyReplicas",
      ],
    },
    {
      name: "a selector of wrong expressions, without a look at the template",
      change: { "spec.selector": wrongExpressions.selector, "spec.template.spec.containers": [] },
      want: [
        ...wrongExpressions.want("spec.selector"),
        `spec.selector: Invalid value: ${wrongExpressions.shown}: invalid label selector`,
      ],
    },
  ],
);
