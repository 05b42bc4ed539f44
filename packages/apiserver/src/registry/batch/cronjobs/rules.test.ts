import { testKindRules } from "../../../testing/kind-rules.ts";

testKindRules(
  "cronjobs.batch",
  {
    spec: {
      schedule: "* * * * *",
      jobTemplate: { spec: { template: { spec: { restartPolicy: "Never", containers: [{ name: "c", image: "i" }] } } } },
    },
  },
  [
    { name: "a schedule", change: {}, want: [] },
    { name: "none", change: { "spec.schedule": "" }, want: ["spec.schedule: Required value"] },
    {
      name: "a wrong one",
      change: { "spec.schedule": "* * *" },
      want: ['spec.schedule: Invalid value: "* * *": expected exactly 5 fields, found 3: [* * *]'],
    },
    { name: "a time zone in it", change: { "spec.schedule": "TZ=UTC * * * * *" }, want: [] },
    {
      name: "numbers",
      change: { "spec.startingDeadlineSeconds": -1, "spec.successfulJobsHistoryLimit": -1, "spec.failedJobsHistoryLimit": -1 },
      want: [
        "spec.startingDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0",
        "spec.successfulJobsHistoryLimit: Invalid value: -1: must be greater than or equal to 0",
        "spec.failedJobsHistoryLimit: Invalid value: -1: must be greater than or equal to 0",
      ],
    },
    {
      name: "an unknown policy",
      change: { "spec.concurrencyPolicy": "Both" },
      want: ['spec.concurrencyPolicy: Unsupported value: "Both": supported values: "Allow", "Forbid", "Replace"'],
    },
    {
      name: "a name too long for its jobs",
      change: { "metadata.name": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" },
      want: [
        'metadata.name: Invalid value: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": must be no more than 52 characters',
      ],
    },
    {
      name: "a selector of its jobs",
      change: { "spec.jobTemplate.spec.manualSelector": true },
      want: ['spec.jobTemplate.spec.manualSelector: Unsupported value: true: supported values: "nil", "false"'],
    },
    {
      name: "a container",
      change: { "spec.jobTemplate.spec.template.spec.containers[0]": { name: "c" } },
      want: ["spec.jobTemplate.spec.template.spec.containers[0].image: Required value"],
    },
    {
      name: "pods that run for ever",
      change: { "spec.jobTemplate.spec.template.spec.restartPolicy": "Always" },
      want: ['spec.jobTemplate.spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'],
    },
    {
      name: "a selector that is made",
      change: { "spec.jobTemplate.spec.selector": { matchLabels: { a: "b" } } },
      want: [
        'spec.jobTemplate.spec.selector: Invalid value: v1.LabelSelector{MatchLabels:map[string]string{"a":"b"}, MatchExpressions:[]v1.LabelSelectorRequirement(nil)}: `selector` will be auto-generated',
      ],
    },
    {
      name: "another schedule that is none",
      before: {},
      change: { "spec.schedule": "x" },
      want: ['spec.schedule: Invalid value: "x": expected exactly 5 fields, found 1: [x]'],
    },
    {
      name: "no word on jobs at the same time",
      undefaulted: true,
      change: {},
      want: [
        "spec.concurrencyPolicy: Required value",
        "spec.jobTemplate.spec.template.spec.containers[0].terminationMessagePolicy: Required value: must be 'File' or 'FallbackToLogsOnError'",
        "spec.jobTemplate.spec.template.spec.containers[0].imagePullPolicy: Required value",
        "spec.jobTemplate.spec.template.spec.dnsPolicy: Required value",
      ],
    },
  ],
);
