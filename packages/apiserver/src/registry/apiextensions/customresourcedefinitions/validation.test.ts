import assert from "node:assert/strict";
import { test } from "node:test";
import { goStruct } from "@coxswain/apimachinery/objects/schema/go/go-print";
import type { CustomResourceDefinition } from "@coxswain/apimachinery/objects/schema/kinds/apiextensions/v1";
import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { testRefusals } from "../../../testing/refusals.ts";
import { defaultCustomResourceDefinition } from "./defaults.ts";
import { validateCustomResourceDefinition, validateCustomResourceDefinitionUpdate } from "./validation.ts";

const object = { type: "object" };
const version = { name: "v1", served: true, storage: true, schema: { openAPIV3Schema: object } };
const names = { plural: "crons", kind: "Cron" };

function aDefinition({ spec = {}, ...rest }: { spec?: object } & Record<string, unknown>): never {
  const crd = {
    metadata: { name: "crons.example.com" },
    spec: { group: "example.com", scope: "Namespaced", names: { ...names }, versions: [version], ...spec },
    ...rest,
  };
  defaultCustomResourceDefinition(crd);
  return crd as never;
}

const badLabel =
  "Invalid value: \"V1\": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const mixedLabel = (kind: string): string =>
  badLabel.replace('"V1":', `"${kind}": may have mixed case, but should otherwise match:`);
const preserveText = "cannot set to true, set x-preserve-unknown-fields to true in spec.versions[*].schema instead";
const goVersion =
  'apiextensions.CustomResourceDefinitionVersion{Name:"v1", Served:true, Storage:true, Deprecated:false, DeprecationWarning:(*string)(nil), Schema:(*apiextensions.CustomResourceValidation)(nil), Subresources:(*apiextensions.CustomResourceSubresources)(nil), AdditionalPrinterColumns:[]apiextensions.CustomResourceColumnDefinition(';
const goColumn =
  'apiextensions.CustomResourceColumnDefinition{Name:"a", Type:"string", Format:"", Description:"", Priority:0, JSONPath:"a"}';

const withAny = { ...object, anyOf: [{ required: ["spec"] }] };

testRefusals<object>(
  (input) => atOnce(validateCustomResourceDefinition(aDefinition(input as never))),
  [
    {
      name: "words at the root of one version's schema where all versions have a status",
      input: {
        spec: {
          versions: [
            { ...version, subresources: { status: {} } },
            { name: "v2", served: true, storage: false, schema: { openAPIV3Schema: withAny }, subresources: { status: {} } },
          ],
        },
      },
      want: [
        `spec.versions[1].schema.openAPIV3Schema: Invalid value: ${goStruct("apiextensions/v1.JSONSchemaProps", withAny).text}: only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations] fields are allowed at the root of the schema if the status subresource is enabled`,
      ],
    },
    { name: "a small definition", input: {}, want: [] },
    {
      name: "a name that is not the plural's",
      input: { metadata: { name: "x" } },
      want: ['metadata.name: Invalid value: "x": must be spec.names.plural+"."+spec.group'],
    },
    {
      name: "a group without a dot",
      input: { metadata: { name: "crons.example" }, spec: { group: "example" } },
      want: ['spec.group: Invalid value: "example": should be a domain with at least one dot'],
    },
    {
      name: "an unknown scope",
      input: { spec: { scope: "World" } },
      want: ['spec.scope: Unsupported value: "World": supported values: "Cluster", "Namespaced"'],
    },
    {
      name: "a version without schema",
      input: { spec: { versions: [{ ...version, schema: undefined }] } },
      want: ["spec.versions[0].schema.openAPIV3Schema: Required value: schemas are required"],
    },
    {
      name: "neither group nor names",
      input: { metadata: { name: "." }, spec: { group: "", names: {} } },
      want: [
        "spec.group: Required value",
        ...["plural", "singular", "kind", "listKind"].map((field) => `spec.names.${field}: Required value`),
      ],
    },
    {
      name: "a group that is no domain",
      input: { metadata: { name: "crons.A" }, spec: { group: "A" } },
      want: [
        "spec.group: Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
      ],
    },
    {
      name: "kinds, short names and categories that are no labels",
      input: { spec: { names: { ...names, kind: "C_", listKind: "L_", shortNames: ["c", "V1"], categories: ["all", "V1"] } } },
      want: [
        `spec.names.singular: ${badLabel.replace("V1", "c_")}`,
        `spec.names.kind: ${mixedLabel("C_")}`,
        `spec.names.listKind: ${mixedLabel("L_")}`,
        `spec.names.shortNames[1]: ${badLabel}`,
        `spec.names.categories[1]: ${badLabel}`,
      ],
    },
    {
      name: "a name that is generated, which is never the plural's",
      input: { metadata: { name: "crons-x", generateName: "crons-" } },
      want: [
        'metadata.generateName: Invalid value: "crons-": must be spec.names.plural+"."+spec.group',
        'metadata.name: Invalid value: "crons-x": must be spec.names.plural+"."+spec.group',
      ],
    },
    {
      name: "neither scope nor conversion strategy",
      input: { spec: { scope: "", conversion: {} } },
      want: ["spec.scope: Required value", "spec.conversion.strategy: Required value"],
    },
    {
      name: "versions that each have separate schemas, scales and columns, all wrong",
      input: {
        spec: {
          versions: [
            {
              ...version,
              schema: { openAPIV3Schema: {} },
              deprecated: true,
              deprecationWarning: "",
              subresources: { scale: { specReplicasPath: "", statusReplicasPath: ".spec.n" } },
              additionalPrinterColumns: [{ name: "a", type: "", jsonPath: "" }],
            },
            { ...version, name: "v2", storage: false, deprecated: true, deprecationWarning: `\u0000${"x".repeat(256)}` },
          ],
        },
      },
      want: [
        'spec.versions[0].deprecationWarning: Invalid value: "": must not be an empty string',
        "spec.versions[0].schema.openAPIV3Schema.type: Required value: must not be empty at the root",
        "spec.versions[0].subresources.scale.specReplicasPath: Required value",
        'spec.versions[0].subresources.scale.statusReplicasPath: Invalid value: ".spec.n": should be a json path under .status',
        "spec.versions[0].additionalPrinterColumns[0].type: Required value: must be one of boolean,date,integer,number,string",
        "spec.versions[0].additionalPrinterColumns[0].JSONPath: Required value",
        ...[
          "must be <= 256 characters long",
          "must only contain printable UTF-8 characters; non-printable character found at index 0",
        ].map((text) => `spec.versions[1].deprecationWarning: Invalid value: "\\x00${"x".repeat(256)}": ${text}`),
      ],
    },
    {
      name: "a path of labels that is below neither spec nor status",
      input: {
        spec: {
          versions: [
            {
              ...version,
              subresources: { scale: { specReplicasPath: ".spec.n", statusReplicasPath: ".status.n", labelSelectorPath: ".x" } },
            },
          ],
        },
      },
      want: [
        'spec.subresources.scale.labelSelectorPath: Invalid value: ".x": should be a json path under either .spec or .status',
      ],
    },
    {
      name: "an unknown conversion, and one by a webhook of which nothing is said",
      input: { spec: { conversion: { strategy: "Magic" } } },
      want: ['spec.conversion.strategy: Unsupported value: "Magic": supported values: "None", "Webhook"'],
    },
    {
      name: "a conversion by a webhook of which nothing is said, with unknown fields kept",
      input: { spec: { preserveUnknownFields: true, conversion: { strategy: "Webhook" } } },
      want: [
        'spec.conversion.strategy: Invalid value: "Webhook": must be None if spec.preserveUnknownFields is true',
        "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook",
        "spec.conversion.conversionReviewVersions: Required value",
        `spec.preserveUnknownFields: Invalid value: true: ${preserveText}`,
      ],
    },
    {
      name: "defaults where unknown fields are kept",
      input: {
        spec: {
          preserveUnknownFields: true,
          versions: [
            { ...version, schema: { openAPIV3Schema: { ...object, properties: { a: { type: "string", default: "a" } } } } },
          ],
        },
      },
      want: [
        "spec.preserveUnknownFields: Invalid value: true: must be false in order to use defaults in the schema",
        `spec.preserveUnknownFields: Invalid value: true: ${preserveText}`,
      ],
    },
    {
      name: "no version to store",
      input: { spec: { versions: [{ ...version, storage: false }] } },
      want: [
        `spec.versions: Invalid value: []apiextensions.CustomResourceDefinitionVersion{${goVersion.replace("Storage:true", "Storage:false")}nil)}}: must have exactly one version marked as storage version`,
        "status.storedVersions: Invalid value: []string(nil): must have at least one stored version",
      ],
    },
    ...[
      { versions: undefined, printed: "(nil)" },
      { versions: null, printed: "(nil)" },
      { versions: [], printed: "{}" },
    ].map(({ versions, printed }) => ({
      name: `the versions ${JSON.stringify(versions)}`,
      input: { spec: { versions } },
      want: [
        `spec.versions: Invalid value: []apiextensions.CustomResourceDefinitionVersion${printed}: must have exactly one version marked as storage version`,
        "status.storedVersions: Invalid value: []string(nil): must have at least one stored version",
      ],
    })),
    {
      name: "a leave of the project that is neither an address nor a refusal",
      input: {
        metadata: { name: "crons.x.k8s.io", annotations: { "api-approved.kubernetes.io": "yes" } },
        spec: { group: "x.k8s.io" },
      },
      want: [
        'metadata.annotations[api-approved.kubernetes.io]: Invalid value: "yes": protected groups must have approval annotation "api-approved.kubernetes.io" with either a URL or a reason starting with "unapproved", see https://github.com/kubernetes/enhancements/pull/1111',
      ],
    },
    ...["https://github.com/kubernetes/enhancements/pull/1", "unapproved, an experiment"].map((leave) => ({
      name: `a group of the project with ${leave}`,
      input: {
        metadata: { name: "crons.k8s.io", annotations: { "api-approved.kubernetes.io": leave } },
        spec: { group: "k8s.io" },
      },
      want: [],
    })),
    {
      name: "names that are no labels",
      input: { spec: { names: { ...names, singular: "Cron", listKind: "Cron" } } },
      want: [
        "spec.names.singular: Invalid value: \"Cron\": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
        'spec.names.listKind: Invalid value: "Cron": kind and listKind may not be the same',
      ],
    },
    {
      name: "a warning without deprecation, columns without a path, a scale of odd paths",
      input: {
        spec: {
          versions: [
            {
              ...version,
              deprecationWarning: "old",
              additionalPrinterColumns: [{ name: "", type: "size", format: "x", jsonPath: "spec" }],
              subresources: { scale: { specReplicasPath: ".status.n", statusReplicasPath: "", labelSelectorPath: "x" } },
            },
          ],
        },
      },
      want: [
        'spec.versions[0].deprecationWarning: Invalid value: "old": can only be set for deprecated versions',
        'spec.subresources.scale.specReplicasPath: Invalid value: ".status.n": should be a json path under .spec',
        "spec.subresources.scale.statusReplicasPath: Required value",
        'spec.subresources.scale.labelSelectorPath: Invalid value: "x": must be a simple json path starting with .',
        "spec.additionalPrinterColumns[0].name: Required value",
        'spec.additionalPrinterColumns[0].type: Invalid value: "size": must be one of boolean,date,integer,number,string',
        'spec.additionalPrinterColumns[0].format: Invalid value: "x": must be one of byte,date,date-time,double,float,int32,int64,password',
        'spec.additionalPrinterColumns[0].JSONPath: Invalid value: "spec": must be a simple json path starting with .',
      ],
    },
    {
      name: "a conversion by a webhook that is nowhere",
      input: { spec: { conversion: { strategy: "Webhook", webhook: { clientConfig: {}, conversionReviewVersions: [] } } } },
      want: [
        "spec.conversion.webhookClientConfig: Required value: exactly one of url or service is required",
        "spec.conversion.conversionReviewVersions: Required value",
      ],
    },
    {
      name: "versions of a conversion webhook that this server does not speak, the same twice",
      input: {
        spec: {
          conversion: {
            strategy: "Webhook",
            webhook: { clientConfig: { url: "https://x" }, conversionReviewVersions: ["v2", "v2"] },
          },
        },
      },
      want: [
        'spec.conversion.conversionReviewVersions[1]: Invalid value: "v2": duplicate version',
        'spec.conversion.conversionReviewVersions: Invalid value: []string{"v2", "v2"}: must include at least one of v1, v1beta1',
      ],
    },
    {
      name: "a webhook for no conversion",
      input: { spec: { conversion: { strategy: "None", webhook: { clientConfig: {}, conversionReviewVersions: ["v1"] } } } },
      want: [
        "spec.conversion.webhookClientConfig: Forbidden: should not be set when strategy is not set to Webhook",
        "spec.conversion.conversionReviewVersions: Forbidden: should not be set when strategy is not set to Webhook",
      ],
    },
    {
      name: "two versions of one name, both of storage; what they do not share is reported at its path",
      input: {
        spec: {
          versions: [version, { ...version, additionalPrinterColumns: [{ name: "a", type: "string", jsonPath: "a" }] }],
        },
      },
      want: [
        'spec.versions[1].additionalPrinterColumns[0].JSONPath: Invalid value: "a": must be a simple json path starting with .',
        `spec.versions: Invalid value: []apiextensions.CustomResourceDefinitionVersion{${goVersion}nil)}, ${goVersion.replace(/\($/, "")}{${goColumn}}}}: must contain unique version names`,
        `spec.versions: Invalid value: []apiextensions.CustomResourceDefinitionVersion{${goVersion}nil)}, ${goVersion.replace(/\($/, "")}{${goColumn}}}}: must have exactly one version marked as storage version`,
      ],
    },
    {
      name: "a first version that is no label, reported twice",
      input: { spec: { versions: [{ ...version, name: "V1" }] } },
      want: [`spec.versions[0].name: ${badLabel}`, `spec.version: ${badLabel}`],
    },
    {
      name: "accepted names that are no labels",
      input: { status: { storedVersions: ["v1"], acceptedNames: { plural: "V1" } } },
      want: [`status.acceptedNames.plural: ${badLabel}`],
    },
    {
      name: "a storage version that is not reported as stored",
      input: { spec: { versions: [version] }, status: { storedVersions: ["v2"] } },
      want: [
        `status.storedVersions: Invalid value: ${goVersion}nil)}: must have the storage version v1`,
        'status.storedVersions[0]: Invalid value: "v2": must appear in spec.versions',
      ],
    },
    {
      name: "a version that was stored and is gone",
      input: { status: { storedVersions: ["v0", "v1"] } },
      want: ['status.storedVersions[0]: Invalid value: "v0": must appear in spec.versions'],
    },
    {
      name: "a version that was stored twice and is gone, reported once",
      input: { status: { storedVersions: ["v0", "v1", "v0"] } },
      want: ['status.storedVersions[2]: Invalid value: "v0": must appear in spec.versions'],
    },
    {
      name: "a second version that was stored and is gone",
      input: { status: { storedVersions: ["v1", "v0"] } },
      want: ['status.storedVersions[1]: Invalid value: "v0": must appear in spec.versions'],
    },
    {
      name: "a version that is not served, without schema",
      input: { spec: { versions: [version, { name: "v2", served: false, storage: false }] } },
      want: ["spec.versions[1].schema.openAPIV3Schema: Required value: schemas are required"],
    },
    {
      name: "a selector below the spec and one below the status",
      input: {
        spec: {
          versions: ["spec", "status"].map((part, i) => ({
            ...version,
            name: `v${i + 1}`,
            storage: i === 0,
            subresources: {
              scale: { specReplicasPath: ".spec.n", statusReplicasPath: ".status.n", labelSelectorPath: `.${part}.s` },
            },
          })),
        },
      },
      want: [],
    },
    {
      name: "a warning of 128 characters, but of 257 bytes",
      input: { spec: { versions: [{ ...version, deprecated: true, deprecationWarning: `${"é".repeat(127)}€` }] } },
      want: [`spec.versions[0].deprecationWarning: Invalid value: "${"é".repeat(127)}€": must be <= 256 characters long`],
    },
    {
      name: "a group that only ends like one of the project",
      input: { metadata: { name: "crons.myk8s.io" }, spec: { group: "myk8s.io" } },
      want: [],
    },
    {
      name: "a group of the project without its leave",
      input: { metadata: { name: "crons.x.k8s.io" }, spec: { group: "x.k8s.io" } },
      want: [
        'metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval annotation "api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111',
      ],
    },
    {
      name: "unknown fields kept everywhere",
      input: { spec: { preserveUnknownFields: true } },
      want: [`spec.preserveUnknownFields: Invalid value: true: ${preserveText}`],
    },
  ],
);

const established = { status: { conditions: [{ type: "Established", status: "True" }], storedVersions: ["v1"] } };
const olderSchema = {
  type: "object",
  properties: { a: { type: "odd" }, b: { type: "array", items: object, "x-kubernetes-list-type": "set" } },
};
const older = { ...version, schema: { openAPIV3Schema: olderSchema } };

const withPart = (part: object): object => ({
  ...version,
  schema: { openAPIV3Schema: { type: "object", properties: { p: part } } },
});
const nullable = { type: "string", nullable: true };
const kept = { ...object, "x-kubernetes-preserve-unknown-fields": true };
const part = "spec.validation.openAPIV3Schema.properties[p]";
const untyped = `${part}.type: Required value: must not be empty for specified object fields`;
const nested = `${part}.properties[a].type: Required value: must not be empty for specified object fields`;
const preserving = "spec.preserveUnknownFields: Invalid value: true: must be false in order to use defaults in the schema";
const keyless = `${part}.x-kubernetes-list-type: Required value: must be map if x-kubernetes-list-map-keys is non-empty`;
const otherReviews = {
  strategy: "Webhook",
  webhook: { clientConfig: { url: "https://x" }, conversionReviewVersions: ["v2"] },
};

testRefusals<{ next: object; current?: object; both?: object }>(
  ({ next, current = {}, both = {} }) =>
    atOnce(
      validateCustomResourceDefinitionUpdate(
        aDefinition({ ...both, spec: next }),
        aDefinition({ ...established, ...both, spec: current }),
      ),
    ),
  [
    {
      name: "another scope and kind once it is served",
      input: { next: { scope: "Cluster", names: { ...names, kind: "Job" } } },
      want: [
        'spec.scope: Invalid value: "Cluster": field is immutable',
        'spec.names.kind: Invalid value: "Job": field is immutable',
      ],
    },
    {
      name: "another group and plural",
      input: { next: { group: "example.org", names: { ...names, plural: "jobs" } } },
      want: [
        'spec.group: Invalid value: "example.org": field is immutable',
        'spec.names.plural: Invalid value: "jobs": field is immutable',
      ],
    },
    {
      name: "an update that leaves wrong types and sets as they were",
      input: { next: { versions: [older] }, current: { versions: [older] } },
      want: [],
    },
    ...[
      { name: "lists whose items may be null", part: { type: "array", items: nullable, "x-kubernetes-list-type": "set" } },
      { name: "defaults with unknown fields", part: { ...object, default: { a: 1 } } },
    ].map(({ name, part }) => ({
      name: `an update that leaves ${name} as they were`,
      input: { next: { versions: [withPart(part)] }, current: { versions: [withPart(part)] } },
      want: [],
    })),
    ...[
      { name: "no structure", part: {}, want: [] },
      { name: "no structure, now with defaults", part: { default: 1 }, want: [preserving, untyped] },
      {
        name: "no structure, now with words of Kubernetes' own",
        part: { "x-kubernetes-list-map-keys": ["a"] },
        want: [keyless, untyped],
      },
      {
        name: "no structure, now that it keeps unknown fields in parts",
        part: { ...object, properties: { a: {}, b: kept } },
        want: [nested],
      },
    ].map(({ name, part, want }) => ({
      name: `an update of what keeps unknown fields everywhere and has ${name}`,
      input: {
        next: { preserveUnknownFields: true, versions: [withPart(part)] },
        current: { preserveUnknownFields: true, versions: [withPart({})] },
      },
      want,
    })),
    {
      name: "an update of what has no structure that drops unknown fields from now on",
      input: {
        next: { versions: [withPart({})] },
        current: { preserveUnknownFields: true, versions: [withPart({})] },
      },
      want: [untyped],
    },
    {
      name: "an update that leaves unknown versions of reviews as they were",
      input: { next: { conversion: otherReviews }, current: { conversion: otherReviews } },
      want: [],
    },
    {
      name: "an update that brings wrong types and sets",
      input: { next: { versions: [older] } },
      want: [
        'spec.validation.openAPIV3Schema.properties[a].type: Unsupported value: "odd": supported values: "array", "boolean", "integer", "number", "object", "string"',
        'spec.validation.openAPIV3Schema.properties[b].items.x-kubernetes-map-type: Invalid value: "null": must be atomic as item of a list with x-kubernetes-list-type=set',
      ],
    },
    {
      name: "an update that keeps unknown fields everywhere from now on",
      input: { next: { preserveUnknownFields: true } },
      want: [`spec.preserveUnknownFields: Invalid value: true: ${preserveText}`],
    },
    {
      name: "an update of what keeps unknown fields everywhere",
      input: { next: { preserveUnknownFields: true }, current: { preserveUnknownFields: true } },
      want: [],
    },
    {
      name: "an update that has no leave of the project, as before",
      input: {
        next: { group: "x.k8s.io" },
        current: { group: "x.k8s.io" },
        both: { metadata: { name: "crons.x.k8s.io" } },
      },
      want: [],
    },
    {
      name: "another scope before it is established",
      input: { next: { scope: "Cluster" }, both: { status: { storedVersions: ["v1"] } } },
      want: [],
    },
    {
      name: "a version that is not served, without schema as before",
      input: {
        next: { versions: [version, { name: "v2", served: false, storage: false }] },
        current: { versions: [version, { name: "v2", served: false, storage: false }] },
      },
      want: [],
    },
    {
      name: "a served version without schema where there was none before",
      input: {
        next: { versions: [{ ...version, schema: undefined }] },
        current: { versions: [{ ...version, schema: undefined }] },
      },
      want: ["spec.versions[0].schema.openAPIV3Schema: Required value: because otherwise all fields are pruned"],
    },
  ],
);

test("the approval of a group of the project cannot be removed", () => {
  const approved = { "api-approved.kubernetes.io": "https://example.com/approval" };
  const of = (annotations: object): never =>
    aDefinition({ ...established, metadata: { name: "crons.x.k8s.io", annotations }, spec: { group: "x.k8s.io" } });
  const fields = atOnce(validateCustomResourceDefinitionUpdate(of({}), of(approved))).map(({ field }) => field);
  assert.deepEqual(fields, ["metadata.annotations[api-approved.kubernetes.io]"]);
});

test("the Services of an object's conversion webhooks have port 443 unless they name another, with or without a path", () => {
  for (const service of [{ path: "/p" }, {}, { port: 8443 }]) {
    const webhook = { clientConfig: { service: { namespace: "n", name: "s", ...service } }, conversionReviewVersions: ["v1"] };
    const crd: CustomResourceDefinition = aDefinition({ spec: { conversion: { strategy: "Webhook", webhook } } });
    assert.equal(crd.spec?.conversion?.webhook?.clientConfig?.service?.port, "port" in service ? 8443 : 443);
  }
});
