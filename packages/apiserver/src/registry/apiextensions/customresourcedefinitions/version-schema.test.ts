import { goStruct } from "@coxswain/apimachinery/objects/schema/go/go-print";
import { testRefusals } from "../../../testing/refusals.ts";
import { strict } from "./options.ts";
import { validateVersionSchema } from "./version-schema.ts";

const object = { type: "object" };
const withSchema = (schema: object): object => schema;
const withField = (field: object): object => withSchema({ type: "object", properties: { spec: field } });
const at = "schema.openAPIV3Schema";

testRefusals<object>(
  (schema) => validateVersionSchema({ openAPIV3Schema: schema }, false, "schema", strict),
  [
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
      want: [`${at}.properties[spec].allOf[0].type: Forbidden: must be empty to be structural`],
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
      name: "metadata of the names, required of what operators ask at the root",
      input: withSchema({
        type: "object",
        properties: { metadata: { type: "object", properties: { name: { type: "string", pattern: "^a" } } } },
        anyOf: [{ required: ["spec"], properties: { spec: { minimum: 1 } } }],
      }),
      want: [`${at}.properties[spec]: Required value: because it is defined in ${at}.anyOf[0].properties[spec]`],
    },
    {
      name: "a map at the root, and metadata in an operator",
      input: withSchema({ ...object, additionalProperties: true, not: { properties: { metadata: {} } } }),
      want: [
        `${at}.additionalProperties: Forbidden: must not be used at the root`,
        `${at}.not.properties[metadata]: Forbidden: must not be specified in a nested context`,
        `${at}.properties[metadata]: Required value: because it is defined in ${at}.not.properties[metadata]`,
      ],
    },
    {
      name: "a kind that is no text, a pattern that is none",
      input: withSchema({ ...object, properties: { kind: { type: "integer" }, a: { type: "string", pattern: "(" } } }),
      want: [
        `${at}.properties[a].pattern: Invalid value: "(": must be a valid regular expression, but isn't: error parsing regexp: missing closing ): \`(\``,
        `${at}.properties[kind].type: Invalid value: "integer": must be string`,
      ],
    },
    {
      name: "lists that are maps by keys that may be absent, are no scalars, are null, come twice",
      input: withField({
        type: "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["a", "b", "c", "a"],
        items: { type: "object", nullable: true, properties: { a: { type: "string", nullable: true }, b: object } },
      }),
      want: [
        `${at}.properties[spec].items.properties[b].type: Invalid value: "object": must be a scalar type if parent array's x-kubernetes-list-type is map`,
        `${at}.properties[spec].x-kubernetes-list-map-keys: Invalid value: []string{"a", "b", "c", "a"}: entries must all be names of item properties`,
        `${at}.properties[spec].x-kubernetes-list-map-keys: Invalid value: []string{"a", "b", "c", "a"}: must not contain duplicate entries`,
        `${at}.properties[spec].items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is map`,
        `${at}.properties[spec].items.properties[a].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property`,
        `${at}.properties[spec].items.properties[a].nullable: Forbidden: this property is in x-kubernetes-list-map-keys, so it cannot be nullable`,
        `${at}.properties[spec].items.properties[b].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property`,
        `${at}.properties[spec].items.properties[a].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property`,
        `${at}.properties[spec].items.properties[a].nullable: Forbidden: this property is in x-kubernetes-list-map-keys, so it cannot be nullable`,
      ],
    },
    {
      name: "keys of a list that is no map",
      input: withField({ type: "array", items: object, "x-kubernetes-list-map-keys": ["a"] }),
      want: [
        `${at}.properties[spec].x-kubernetes-list-type: Required value: must be map if x-kubernetes-list-map-keys is non-empty`,
      ],
    },
    {
      name: "a set of lists that are maps, and of objects that are not compared as a whole",
      input: withSchema({
        ...object,
        properties: {
          a: {
            type: "array",
            "x-kubernetes-list-type": "set",
            items: { type: "array", items: object, "x-kubernetes-list-type": "set" },
          },
        },
      }),
      want: [
        `${at}.properties[a].items.items.x-kubernetes-map-type: Invalid value: "null": must be atomic as item of a list with x-kubernetes-list-type=set`,
        `${at}.properties[a].items.x-kubernetes-list-type: Invalid value: "set": must be atomic as item of a list with x-kubernetes-list-type=set`,
      ],
    },
    {
      name: "defaults of what every resource has",
      input: withSchema({ ...object, properties: { kind: { type: "string", default: "A" } } }),
      want: [`${at}.properties[kind].default: Forbidden: must not be set in top-level kind`],
    },
  ],
);

testRefusals<object>(
  (schema) => validateVersionSchema({ openAPIV3Schema: schema }, true, "schema", strict),
  [
    {
      name: "words at the root that say nothing of the status, where there is one",
      input: { ...object, anyOf: [{ required: ["spec"] }] },
      want: [
        `${at}: Invalid value: ${goStruct("apiextensions/v1.JSONSchemaProps", { ...object, anyOf: [{ required: ["spec"] }] }).text}: only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations] fields are allowed at the root of the schema if the status subresource is enabled`,
      ],
    },
    {
      name: "such words in a schema that is too large to be quoted",
      input: { ...object, anyOf: Array.from({ length: 300 }, () => ({ required: ["spec"] })) },
      want: [
        `${at}: Invalid value: apiextensions.JSONSchemaProps{…}: only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations] fields are allowed at the root of the schema if the status subresource is enabled`,
      ],
    },
    {
      name: "another type at the root where there is a status",
      input: { type: "array", items: { type: "string" } },
      want: [
        `${at}.type: Invalid value: "array": only "object" is allowed as the type at the root of the schema if the status subresource is enabled`,
        `${at}.type: Invalid value: "array": must be object at the root`,
      ],
    },
    {
      name: "the usual words at the root where there is a status",
      input: {
        ...object,
        description: "a",
        required: ["spec"],
        properties: { spec: object },
        "x-kubernetes-preserve-unknown-fields": true,
      },
      want: [],
    },
  ],
);
