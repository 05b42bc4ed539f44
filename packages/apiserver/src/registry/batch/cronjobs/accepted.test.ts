/** Values that are accepted, next to those that rules.test.ts sees refused, and what an update may change. */
import { testAccepted } from "../../../testing/accepted.ts";

const resource = "cronjobs.batch";

testAccepted([
  {
    resource,
    name: "each way to treat a job that still runs",
    taken: ["Allow", "Forbid", "Replace", ""].map((policy) => ({ "spec.concurrencyPolicy": policy })),
  },
  {
    resource,
    name: "pods that end, numbers of nothing and no generated selector",
    taken: [
      { "spec.jobTemplate.spec.template.spec.restartPolicy": "OnFailure" },
      { "spec.startingDeadlineSeconds": 0, "spec.successfulJobsHistoryLimit": 0, "spec.failedJobsHistoryLimit": 0 },
      { "spec.jobTemplate.spec.manualSelector": false },
    ],
    refused: [
      [
        { "spec.jobTemplate.spec.backoffLimit": -1 },
        "spec.jobTemplate.spec.backoffLimit: Invalid value: -1: must be greater than or equal to 0",
      ],
      [
        { "spec.jobTemplate.spec.completionMode": "Indexed" },
        "spec.jobTemplate.spec.completions: Required value: when completion mode is Indexed",
      ],
    ],
  },
  {
    resource,
    name: "a name of up to 52 characters",
    taken: [{ "metadata.name": "a".repeat(52) }],
    refused: [
      [{ "metadata.name": "a".repeat(53) }, `metadata.name: Invalid value: "${"a".repeat(53)}": must be no more than 52`],
    ],
  },
  {
    resource,
    name: "a name that was too long before, and anything of the spec",
    before: {},
    with: { "metadata.name": "a".repeat(53) },
    taken: [{}, { "spec.schedule": "@daily", "spec.suspend": true, "spec.concurrencyPolicy": "Replace" }],
  },
]);
