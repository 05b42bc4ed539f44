/** Values that are accepted, next to those that rules.test.ts sees refused, and what an update may change. */
import { testAccepted } from "../../../testing/accepted.ts";

const resource = "jobs.batch";
const template = "spec.template";
const tracking = "batch.kubernetes.io/job-tracking";
const pod = { restartPolicy: "Never", containers: [{ name: "c", image: "i" }] };
/** A stored job with a selector of its own, which a generated uid does not change. */
const manual = {
  spec: {
    manualSelector: true,
    selector: { matchLabels: { a: "b" } },
    template: { metadata: { labels: { a: "b" } }, spec: pod },
  },
};
const suspended = { ...manual, spec: { ...manual.spec, suspend: true } };
const required = "requiredDuringSchedulingIgnoredDuringExecution";
const nodeAffinity = { [required]: { nodeSelectorTerms: [{ matchExpressions: [{ key: "zone", operator: "Exists" }] }] } };
const podAffinity = { [required]: [{ topologyKey: "zone", labelSelector: {} }] };
const immutableTemplate = "spec.template: Invalid value: core.PodTemplateSpec{";

testAccepted([
  {
    resource,
    name: "pods that end and each mode of completion",
    taken: [
      { [`${template}.spec.restartPolicy`]: "OnFailure" },
      { "spec.completionMode": "NonIndexed" },
      { "spec.completionMode": "Indexed", "spec.completions": 0 },
      { "spec.completionMode": "Indexed", "spec.completions": 1, "spec.parallelism": 100_000 },
      { "spec.completionMode": "NonIndexed", "spec.parallelism": 100_001 },
    ],
  },
  {
    resource,
    name: "indexed pods whose names are labels",
    with: { "spec.completionMode": "Indexed", "spec.parallelism": 1 },
    taken: [
      { "metadata.name": "a".repeat(61), "spec.completions": 10 },
      { "metadata.name": "a".repeat(60), "spec.completions": 11 },
      { "metadata.name": "a".repeat(63), "spec.completions": 0 },
    ],
    refused: [
      [
        { "metadata.name": "a".repeat(61), "spec.completions": 11 },
        `metadata.name: Invalid value: "${"a".repeat(61)}": will not able`,
      ],
      [
        { "metadata.name": "a".repeat(62), "spec.completions": 1 },
        `metadata.name: Invalid value: "${"a".repeat(62)}": will not able`,
      ],
      [{ "metadata.name": "a.b", "spec.completions": 1 }, 'metadata.name: Invalid value: "a.b": will not able'],
    ],
  },
  {
    resource,
    name: "a generated selector of any length of name, and labels as it makes them",
    taken: [
      { [`${template}.metadata.labels`]: { "job-name": "valid", a: "b" } },
      { "spec.selector": { matchLabels: { "job-name": "valid" } } },
    ],
    refused: [
      [
        { [`${template}.metadata.labels`]: { "job-name": "other" } },
        `spec.template.metadata.labels[job-name]: Invalid value: map[string]string{"controller-uid":`,
      ],
      [
        { "spec.selector": { matchLabels: { a: "b" } }, [`${template}.metadata.labels`]: { a: "b" } },
        "spec.selector: Invalid value: v1.LabelSelector{",
      ],
    ],
  },
  {
    resource,
    valid: manual,
    name: "what may change while the job runs",
    before: { "spec.parallelism": 1 },
    taken: [
      { "spec.parallelism": 0 },
      { "spec.backoffLimit": 0, "spec.activeDeadlineSeconds": 0, "spec.ttlSecondsAfterFinished": 0 },
      { "spec.suspend": true },
      { "metadata.labels": { x: "y" } },
    ],
    refused: [
      [{ [`${template}.spec.nodeSelector`]: { a: "b" } }, immutableTemplate],
      [{ [`${template}.metadata.annotations`]: { a: "b" } }, immutableTemplate],
      [{ "spec.completions": 1 }, "spec.completions: Invalid value: 1: field is immutable"],
    ],
  },
  {
    resource,
    valid: suspended,
    name: "of the template of a job that never ran, where its pods may run",
    before: { [`${template}.metadata.annotations`]: { a: "b" }, [`${template}.spec.tolerations`]: [{ operator: "Exists" }] },
    taken: [
      { [`${template}.metadata.annotations`]: { a: "c" } },
      { [`${template}.metadata.annotations`]: undefined },
      { [`${template}.spec.tolerations`]: undefined },
      { [`${template}.spec.affinity`]: {} },
      { [`${template}.spec.affinity`]: { nodeAffinity }, "spec.suspend": false },
    ],
    refused: [
      [{ [`${template}.spec.affinity`]: { nodeAffinity, podAffinity } }, immutableTemplate],
      [{ [`${template}.spec.affinity`]: { podAntiAffinity: podAffinity } }, immutableTemplate],
      [{ [`${template}.spec.priorityClassName`]: "p" }, immutableTemplate],
    ],
  },
  {
    resource,
    valid: suspended,
    name: "labels of the template of a job that never ran",
    before: { [`${template}.metadata.labels`]: { a: "b", c: "d" } },
    taken: [{ [`${template}.metadata.labels`]: { a: "b", c: "e" } }, { [`${template}.metadata.labels`]: { a: "b" } }],
  },
  {
    resource,
    valid: suspended,
    name: "of the template of a suspended job that ran once, nothing",
    before: { status: { startTime: "2022-01-01T00:00:00Z" } },
    taken: [{}, { "spec.suspend": false }],
    refused: [
      [{ [`${template}.spec.nodeSelector`]: { a: "b" } }, immutableTemplate],
      [{ [`${template}.metadata.labels`]: { a: "b", c: "d" } }, immutableTemplate],
    ],
  },
  {
    resource,
    valid: suspended,
    name: "of an affinity to nodes and pods only that to nodes",
    before: { [`${template}.spec.affinity`]: { nodeAffinity, podAffinity } },
    taken: [{ [`${template}.spec.affinity`]: { podAffinity } }],
    refused: [
      [{ [`${template}.spec.affinity`]: undefined }, immutableTemplate],
      [{ [`${template}.spec.affinity`]: { nodeAffinity } }, immutableTemplate],
    ],
  },
  {
    resource,
    valid: suspended,
    name: "an affinity to nodes alone may go",
    before: { [`${template}.spec.affinity`]: { nodeAffinity }, [`${template}.spec.nodeSelector`]: { a: "b" } },
    taken: [{ [`${template}.spec.affinity`]: undefined }, { [`${template}.spec.nodeSelector`]: undefined }],
  },
  {
    resource,
    valid: suspended,
    name: "with the gate off, nothing of the template",
    gates: { JobMutableNodeSchedulingDirectives: false },
    before: {},
    taken: [{}],
    refused: [
      [{ [`${template}.spec.nodeSelector`]: { a: "b" } }, immutableTemplate],
      [{ [`${template}.metadata.labels`]: { a: "b", c: "d" } }, immutableTemplate],
    ],
  },
  {
    resource,
    valid: manual,
    name: "that finalizers count the pods, of a job that said so before",
    before: { "metadata.annotations": { [tracking]: "" } },
    taken: [{}, { "metadata.annotations": {} }, { "metadata.annotations": { [tracking]: "x" } }],
  },
  {
    resource,
    valid: manual,
    name: "counts of nothing, and pods that are counted once",
    status: true,
    before: {},
    taken: [
      { status: { active: 0, succeeded: 0, failed: 0, uncountedTerminatedPods: { succeeded: ["a"], failed: ["b"] } } },
      { status: { uncountedTerminatedPods: {} } },
    ],
    refused: [
      [
        { status: { uncountedTerminatedPods: { failed: ["b", "b"] } } },
        'status.uncountedTerminatedPods.failed[1]: Duplicate value: "b"',
      ],
      [
        { status: { uncountedTerminatedPods: { failed: [""] } } },
        'status.uncountedTerminatedPods.failed[0]: Invalid value: "": must not be empty',
      ],
    ],
  },
]);
