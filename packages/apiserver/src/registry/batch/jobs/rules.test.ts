import { testKindRules } from "../../../testing/kind-rules.ts";

testKindRules(
  "jobs.batch",
  { spec: { template: { spec: { restartPolicy: "Never", containers: [{ name: "c", image: "i" }] } } } },
  [
    { name: "a job", change: {}, want: [] },
    {
      name: "numbers",
      change: {
        "spec.parallelism": -1,
        "spec.completions": -1,
        "spec.activeDeadlineSeconds": -1,
        "spec.backoffLimit": -1,
        "spec.ttlSecondsAfterFinished": -1,
      },
      want: [
        "spec.parallelism: Invalid value: -1: must be greater than or equal to 0",
        "spec.completions: Invalid value: -1: must be greater than or equal to 0",
        "spec.activeDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0",
        "spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0",
        "spec.ttlSecondsAfterFinished: Invalid value: -1: must be greater than or equal to 0",
      ],
    },
    {
      name: "pods that run for ever",
      change: { "spec.template.spec.restartPolicy": "Always" },
      want: ['spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'],
    },
    {
      name: "no restart policy",
      change: { "spec.template.spec.restartPolicy": undefined },
      want: ['spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'],
    },
    {
      name: "an unknown mode of completion",
      change: { "spec.completionMode": "Sorted" },
      want: ['spec.completionMode: Unsupported value: "Sorted": supported values: "NonIndexed", "Indexed"'],
    },
    {
      name: "indexes without number",
      change: { "spec.completionMode": "Indexed", "spec.completions": undefined, "spec.parallelism": 2 },
      want: ["spec.completions: Required value: when completion mode is Indexed"],
    },
    {
      name: "too many indexes",
      change: { "spec.completionMode": "Indexed", "spec.completions": 100000000, "spec.parallelism": 100001 },
      want: ["spec.parallelism: Invalid value: 100001: must be less than or equal to 100000 when completion mode is Indexed"],
    },
    {
      name: "a selector that does not select",
      change: { "spec.manualSelector": true, "spec.selector": { matchLabels: { a: "b" } } },
      want: ["spec.template.metadata.labels: Invalid value: map[string]string(nil): `selector` does not match template `labels`"],
    },
    {
      name: "other completions and selector",
      change: { "spec.completions": 3, "spec.selector": { matchLabels: { a: "b" } }, "spec.completionMode": "Indexed" },
      before: {
        "spec.completions": 2,
        "spec.manualSelector": true,
        "spec.selector": { matchLabels: { c: "d" } },
        "spec.template.metadata.labels": { a: "b", c: "d" },
      },
      want: [
        "spec.completions: Invalid value: 3: field is immutable",
        'spec.selector: Invalid value: v1.LabelSelector{MatchLabels:map[string]string{"a":"b"}, MatchExpressions:[]v1.LabelSelectorRequirement(nil)}: field is immutable',
        'spec.completionMode: Invalid value: "Indexed": field is immutable',
      ],
    },
    {
      name: "another template",
      change: { "spec.template.spec.containers[0].image": "j" },
      before: {
        "spec.manualSelector": true,
        "spec.selector": { matchLabels: { c: "d" } },
        "spec.template.metadata.labels": { c: "d" },
      },
      want: [
        'spec.template: Invalid value: map[string]interface {}{"metadata":map[string]interface {}{"labels":map[string]string{"c":"d"}}, "spec":map[string]interface {}{"containers":[]interface {}{map[string]interface {}{"image":"j", "imagePullPolicy":"Always", "name":"c", "resources":map[string]string{}, "terminationMessagePath":"/dev/termination-log", "terminationMessagePolicy":"File"}}, "dnsPolicy":"ClusterFirst", "restartPolicy":"Never", "schedulerName":"default-scheduler", "securityContext":map[string]string{}, "terminationGracePeriodSeconds":30}}: field is immutable',
      ],
    },
    {
      name: "counts",
      change: { status: { active: -1, succeeded: -1, failed: -1 } },
      before: {
        "spec.manualSelector": true,
        "spec.selector": { matchLabels: { c: "d" } },
        "spec.template.metadata.labels": { c: "d" },
      },
      status: true,
      want: [
        "status.active: Invalid value: -1: must be greater than or equal to 0",
        "status.succeeded: Invalid value: -1: must be greater than or equal to 0",
        "status.failed: Invalid value: -1: must be greater than or equal to 0",
      ],
    },
    {
      name: "a name too long for its pods",
      change: {
        "metadata.name": "a".repeat(62),
        "spec.completionMode": "Indexed",
        "spec.completions": 100,
        "spec.parallelism": 1,
      },
      want: [
        'metadata.name: Invalid value: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": will not able to create pod with invalid DNS label: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-99',
      ],
    },
    {
      name: "a manual selector that is missing",
      change: { "spec.manualSelector": true },
      want: [
        "spec.selector: Required value",
        "spec.template.metadata.labels: Invalid value: map[string]string(nil): `selector` does not match template `labels`",
      ],
    },
    {
      name: "a selector that is not its own any more",
      before: {
        "spec.selector": { matchLabels: { "controller-uid": "2" } },
        "spec.template.metadata.labels": { "controller-uid": "2" },
      },
      change: {},
      want: [
        'spec.template.metadata.labels[controller-uid]: Invalid value: map[string]string{"controller-uid":"2"}: must be \'1\'',
        "spec.template.metadata.labels[job-name]: Required value: must be 'valid'",
        'spec.selector: Invalid value: v1.LabelSelector{MatchLabels:map[string]string{"controller-uid":"2"}, MatchExpressions:[]v1.LabelSelectorRequirement(nil)}: `selector` not auto-generated',
      ],
    },
    {
      name: "pods that are counted twice, and of no uid",
      status: true,
      before: {
        "spec.manualSelector": true,
        "spec.selector": { matchLabels: { c: "d" } },
        "spec.template.metadata.labels": { c: "d" },
      },
      change: { "status.uncountedTerminatedPods": { succeeded: ["a", ""], failed: ["a"] } },
      want: [
        'status.uncountedTerminatedPods.succeeded[1]: Invalid value: "": must not be empty',
        'status.uncountedTerminatedPods.failed[0]: Duplicate value: "a"',
      ],
    },
  ],
);
