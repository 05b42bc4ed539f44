/** Values that are accepted, next to those that rules.test.ts sees refused, and what an update may change. */
import { testAccepted } from "../../../testing/accepted.ts";

const resource = "customresourcedefinitions.apiextensions.k8s.io";
const schema = { openAPIV3Schema: { type: "object" } };
const v1 = { name: "v1", served: true, storage: true, schema };
const v2 = { name: "v2", served: false, storage: false, schema };
const valid = {
  metadata: { name: "crons.example.com" },
  spec: { group: "example.com", scope: "Namespaced", names: { plural: "crons", kind: "Cron" }, versions: [v1] },
};
const first = (more: object) => ({ "spec.versions": [{ ...v1, ...more }] });
const column = (more: object) => first({ additionalPrinterColumns: [{ name: "n", type: "string", jsonPath: ".a", ...more }] });
const scale = (more: object) =>
  first({ subresources: { scale: { specReplicasPath: ".spec.n", statusReplicasPath: ".status.n", ...more } } });
const deprecated = (deprecationWarning: string) => first({ deprecated: true, deprecationWarning });
const ofColumns = "spec.additionalPrinterColumns[0]";
const ofScale = "spec.subresources.scale";
const approved = (group: string, approval?: string) => ({
  "metadata.name": `crons.${group}`,
  "spec.group": group,
  "metadata.annotations": approval === undefined ? undefined : { "api-approved.kubernetes.io": approval },
});
const approval = "metadata.annotations[api-approved.kubernetes.io]";
const established = (status: string) => ({
  "status.conditions": [{ type: "Established", status }],
  "status.storedVersions": ["v1"],
});
const conversion = (more: object) => ({
  "spec.conversion": {
    strategy: "Webhook",
    webhook: { clientConfig: { url: "https://a" }, conversionReviewVersions: ["v1"], ...more },
  },
});

testAccepted([
  {
    resource,
    valid,
    name: "scopes, names and several versions",
    taken: [
      ...["Cluster", "Namespaced"].map((scope) => ({ "spec.scope": scope })),
      {
        "spec.names": {
          plural: "crons",
          singular: "cron",
          kind: "CRON",
          listKind: "CronL",
          shortNames: ["c"],
          categories: ["all"],
        },
      },
      { "spec.versions": [v1, v2] },
      { "spec.versions": [v2, v1], "status.storedVersions": ["v1"] },
      { "spec.preserveUnknownFields": false },
    ],
  },
  {
    resource,
    valid,
    name: "columns of each type and format",
    taken: [
      ...["boolean", "date", "integer", "number", "string"].map((type) => column({ type })),
      ...["byte", "date", "date-time", "double", "float", "int32", "int64", "password", ""].map((format) => column({ format })),
      column({ jsonPath: ".", priority: 1 }),
    ],
    refused: [
      [column({ type: "array" }), `${ofColumns}.type: Invalid value: "array": must be one of boolean,date,integer,number,string`],
      [column({ format: "int8" }), `${ofColumns}.format: Invalid value: "int8": must be one of byte,date,date-time`],
      [column({ jsonPath: "a" }), `${ofColumns}.JSONPath: Invalid value: "a": must be a simple json path starting with .`],
    ],
  },
  {
    resource,
    valid,
    name: "a scale of the numbers below spec and status",
    taken: [
      scale({}),
      scale({ specReplicasPath: ".spec.a.b", labelSelectorPath: ".spec.s" }),
      scale({ labelSelectorPath: ".status.s" }),
    ],
    refused: [
      [
        scale({ specReplicasPath: ".spec" }),
        `${ofScale}.specReplicasPath: Invalid value: ".spec": should be a json path under .spec`,
      ],
      [
        scale({ specReplicasPath: ".specx.n" }),
        `${ofScale}.specReplicasPath: Invalid value: ".specx.n": should be a json path under .spec`,
      ],
      [
        scale({ specReplicasPath: ".status.n" }),
        `${ofScale}.specReplicasPath: Invalid value: ".status.n": should be a json path under .spec`,
      ],
      [
        scale({ statusReplicasPath: ".spec.n" }),
        `${ofScale}.statusReplicasPath: Invalid value: ".spec.n": should be a json path under .status`,
      ],
      [
        scale({ labelSelectorPath: ".metadata.l" }),
        `${ofScale}.labelSelectorPath: Invalid value: ".metadata.l": should be a json path under either`,
      ],
      [scale({ statusReplicasPath: "" }), `${ofScale}.statusReplicasPath: Required value`],
    ],
  },
  {
    resource,
    valid,
    name: "warnings up to their limits",
    taken: [
      deprecated("w"),
      deprecated("w".repeat(256)),
      deprecated("é, – and 語!"),
      first({ deprecated: true }),
      first({ deprecated: false }),
    ],
    refused: [
      [deprecated("w".repeat(257)), "spec.versions[0].deprecationWarning: Invalid value"],
      [
        deprecated("é\n"),
        'spec.versions[0].deprecationWarning: Invalid value: "é\\n": must only contain printable UTF-8 characters; non-printable character found at index 2',
      ],
    ],
  },
  {
    resource,
    valid,
    name: "groups of the project with its leave, and others without",
    taken: [
      approved("example.com"),
      approved("k8s.io.example.com"),
      approved("mykubernetes.io"),
      ...["x.k8s.io", "x.kubernetes.io"].map((group) => approved(group, "https://github.com/x/y/pull/1")),
      ...["unapproved", "unapproved, an experiment"].map((text) => approved("x.kubernetes.io", text)),
    ],
    refused: [
      ...["x.k8s.io", "x.kubernetes.io", "kubernetes.io"].map(
        (group) => [approved(group), `${approval}: Required value: protected groups must have`] as const,
      ),
      ...["mailto:x", "yes", "Unapproved"].map(
        (text) => [approved("x.k8s.io", text), `${approval}: Invalid value: "${text}"`] as const,
      ),
    ],
  },
  {
    resource,
    valid,
    name: "another approval of a group of the project, as it was before",
    with: approved("x.k8s.io"),
    before: {},
    taken: [
      {},
      { "metadata.annotations": { "api-approved.kubernetes.io": "https://a" } },
      { "metadata.annotations": { "api-approved.kubernetes.io": "unapproved" } },
    ],
    refused: [[{ "metadata.annotations": { "api-approved.kubernetes.io": "yes" } }, `${approval}: Invalid value: "yes"`]],
  },
  {
    resource,
    valid,
    name: "scope and kind that change before it is established",
    before: established("False"),
    taken: [{ "spec.scope": "Cluster" }, { "spec.names.kind": "Other", "spec.names.listKind": "Others" }],
    refused: [
      [{ "spec.names.plural": "others" }, 'spec.names.plural: Invalid value: "others": field is immutable'],
      [{ "spec.group": "b.c" }, 'spec.group: Invalid value: "b.c": field is immutable'],
    ],
  },
  {
    resource,
    valid,
    name: "what changes after it is established",
    before: { ...established("True"), "spec.names.singular": "cron", "spec.names.listKind": "CronList" },
    taken: [
      { "spec.names.singular": "c" },
      { "spec.names.listKind": "Crons" },
      { "spec.names.shortNames": ["c"] },
      { "spec.versions": [v1, v2] },
    ],
    refused: [
      [{ "spec.scope": "Cluster" }, 'spec.scope: Invalid value: "Cluster": field is immutable'],
      [{ "spec.names.kind": "Other" }, 'spec.names.kind: Invalid value: "Other": field is immutable'],
      [
        { "spec.versions": [{ ...v2, storage: true }] },
        'status.storedVersions[0]: Invalid value: "v1": must appear in spec.versions',
      ],
    ],
  },
  {
    resource,
    valid,
    name: "conversions",
    taken: [
      { "spec.conversion": { strategy: "None" } },
      conversion({}),
      conversion({ conversionReviewVersions: ["v9", "v1beta1"] }),
      conversion({ clientConfig: { service: { name: "s", namespace: "n", port: 65_535 } } }),
    ],
    refused: [
      [
        conversion({ conversionReviewVersions: ["v9"] }),
        'spec.conversion.conversionReviewVersions: Invalid value: []string{"v9"}: must include at least one',
      ],
      [
        conversion({ clientConfig: undefined }),
        "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook",
      ],
      [
        { "spec.conversion": { strategy: "None", webhook: { conversionReviewVersions: ["v1"] } } },
        "spec.conversion.conversionReviewVersions: Forbidden: should not be set when strategy is not set to Webhook",
      ],
    ],
  },
  {
    resource,
    valid,
    name: "versions of reviews by a definition that had none",
    before: { "status.storedVersions": ["v1"] },
    taken: [conversion({}), conversion({ conversionReviewVersions: ["v9", "v1"] })],
    refused: [
      [
        conversion({ conversionReviewVersions: ["v9"] }),
        'spec.conversion.conversionReviewVersions: Invalid value: []string{"v9"}: must include at least one',
      ],
    ],
  },
  {
    resource,
    valid,
    name: "versions of reviews by a definition that had unknown ones alone, or a known one beside another",
    before: { "status.storedVersions": ["v1"], ...conversion({ conversionReviewVersions: ["v9"] }) },
    taken: [conversion({ conversionReviewVersions: ["v8"] })],
    refused: [
      [
        conversion({ conversionReviewVersions: ["v8", "v8"] }),
        'spec.conversion.conversionReviewVersions[1]: Invalid value: "v8": duplicate version',
      ],
    ],
  },
]);
