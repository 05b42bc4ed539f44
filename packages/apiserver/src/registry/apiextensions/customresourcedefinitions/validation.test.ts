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
  defaultCustomResourceDefinition(crd as never);
  return crd as never;
}

const withSchema = (schema: object): object => ({ spec: { versions: [{ ...version, schema: { openAPIV3Schema: schema } }] } });
const withField = (field: object): object => withSchema({ type: "object", properties: { spec: field } });
const at = "spec.versions[0].schema.openAPIV3Schema";

testRefusals<object>(
  (input) => validateCustomResourceDefinition(aDefinition(input as never)),
  [
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
      name: "names that are no labels",
      input: { spec: { names: { ...names, singular: "Cron", listKind: "Cron" } } },
      want: [
        "spec.names.singular: Invalid value: \"Cron\": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
        'spec.names.listKind: Invalid value: "Cron": kind and listKind may not be the same',
      ],
    },
    { name: "no type at the root", input: withSchema({}), want: [`${at}.type: Required value: must not be empty at the root`] },
    {
      name: "a list at the root",
      input: withSchema({ type: "array", items: { type: "string" } }),
      want: [`${at}.type: Invalid value: "array": must be object at the root`],
    },
    {
      name: "a field without type",
      input: withField({}),
      want: [`${at}.properties[spec].type: Required value: must not be empty for specified object fields`],
    },
    {
      name: "an unknown type",
      input: withField({ type: "text" }),
      want: [
        `${at}.properties[spec].type: Unsupported value: "text": supported values: "array", "boolean", "integer", "number", "object", "string"`,
      ],
    },
    {
      name: "a list of nothing",
      input: withField({ type: "array" }),
      want: [`${at}.properties[spec].items: Required value: must be specified`],
    },
    {
      name: "references and definitions",
      input: withField({ type: "object", $ref: "#/x", definitions: { x: {} } }),
      want: [
        `${at}.properties[spec].definitions: Forbidden: definitions is not supported`,
        `${at}.properties[spec].$ref: Forbidden: $ref is not supported`,
      ],
    },
    {
      name: "items that must differ",
      input: withField({ type: "array", items: { type: "string" }, uniqueItems: true }),
      want: [
        `${at}.properties[spec].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic`,
      ],
    },
    {
      name: "a map with fields",
      input: withField({ type: "object", properties: { a: { type: "string" } }, additionalProperties: { type: "string" } }),
      want: [`${at}.properties[spec].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive`],
    },
    {
      name: "a type inside of a logical operator",
      input: withField({ type: "object", allOf: [{ type: "object", properties: { a: {} } }] }),
      want: [
        `${at}.properties[spec].allOf[0].type: Forbidden: must be empty to be structural`,
        `${at}.properties[spec].properties[a]: Required value: because it is defined in ${at}.properties[spec].allOf[0].properties[a]`,
      ],
    },
    {
      name: "an integer or string",
      input: withField({ "x-kubernetes-int-or-string": true, anyOf: [{ type: "integer" }, { type: "string" }] }),
      want: [],
    },
    {
      name: "metadata beyond the name",
      input: withSchema({ type: "object", properties: { metadata: { type: "object", properties: { labels: object } } } }),
      want: [
        `${at}.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified`,
      ],
    },
    {
      name: "an embedded resource that is no object",
      input: withField({ type: "string", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true }),
      want: [`${at}.properties[spec].type: Invalid value: "string": must be object if x-kubernetes-embedded-resource is true`],
    },
    {
      name: "a list that is a map by no keys",
      input: withField({ type: "array", items: object, "x-kubernetes-list-type": "map" }),
      want: [
        `${at}.properties[spec].x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map`,
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
        'spec.versions[0].subresources.scale.specReplicasPath: Invalid value: ".status.n": should be a json path under .spec',
        "spec.versions[0].subresources.scale.statusReplicasPath: Required value",
        'spec.versions[0].subresources.scale.labelSelectorPath: Invalid value: "x": must be a simple json path starting with .',
        "spec.versions[0].additionalPrinterColumns[0].name: Required value",
        'spec.versions[0].additionalPrinterColumns[0].type: Unsupported value: "size": supported values: "boolean", "date", "integer", "number", "string"',
        'spec.versions[0].additionalPrinterColumns[0].format: Unsupported value: "x": supported values: "byte", "date", "date-time", "double", "float", "int32", "int64", "password"',
        'spec.versions[0].additionalPrinterColumns[0].jsonPath: Invalid value: "spec": must be a simple json path starting with .',
      ],
    },
    {
      name: "a conversion by a webhook that is nowhere",
      input: { spec: { conversion: { strategy: "Webhook", webhook: { clientConfig: {}, conversionReviewVersions: [] } } } },
      want: [
        "spec.conversion.webhookClientConfig: Required value: exactly one of url or service is required",
        "spec.conversion.conversionReviewVersions: Required value: must specify one of v1, v1beta1",
      ],
    },
    {
      name: "a version that was stored and is gone",
      input: { status: { storedVersions: ["v0", "v1"] } },
      want: ['status.storedVersions[0]: Invalid value: "v0": must appear in spec.versions'],
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
      want: [
        "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
      ],
    },
  ],
);

const established = { status: { conditions: [{ type: "Established", status: "True" }], storedVersions: ["v1"] } };

testRefusals<object>(
  (spec) => validateCustomResourceDefinitionUpdate(aDefinition({ spec }), aDefinition(established)),
  [
    {
      name: "another scope and kind once it is served",
      input: { scope: "Cluster", names: { ...names, kind: "Job" } },
      want: [
        'spec.scope: Invalid value: "Cluster": field is immutable',
        'spec.names.kind: Invalid value: "Job": field is immutable',
      ],
    },
  ],
);
