import { testRefusals } from "../../../testing/refusals.ts";
import { strict } from "./options.ts";
import { validateVersionSchema } from "./version-schema.ts";

const object = { type: "object" };
const keeping = { "x-kubernetes-preserve-unknown-fields": true };
const embedded = { ...object, "x-kubernetes-embedded-resource": true };
const withFields = (properties: object): object => ({ ...object, properties });
const withField = (field: object): object => withFields({ spec: field });
const at = "schema.openAPIV3Schema.properties";
const spec = `${at}[spec].default`;
/** `minimum: 1` nested in the given number of allOf operators. */
const deepConditions = (levels: number): object => (levels === 0 ? { minimum: 1 } : { allOf: [deepConditions(levels - 1)] });
const dns =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

testRefusals<object>(
  (schema) => validateVersionSchema({ openAPIV3Schema: schema }, false, "schema", strict),
  [
    {
      name: "a default of another type",
      input: withField({ type: "integer", default: "-1" }),
      want: [`${spec}: Invalid value: "string":  in body must be of type integer: "string"`],
    },
    {
      name: "defaults that are null where they may be",
      input: withField({
        ...object,
        nullable: true,
        properties: { a: { type: "string", nullable: true } },
        default: { a: null },
      }),
      want: [],
    },
    {
      name: "a default with a null where there may be none, and where no value of a list is one",
      input: withField({
        ...withFields({ a: { type: "string" }, b: { type: "string", nullable: true, enum: ["x"] } }),
        default: { a: null, b: null },
      }),
      want: [
        `${spec}.a: Invalid value: "null": a in body must be of type string: "null"`,
        `${spec}.b: Unsupported value: "null": supported values: "x"`,
      ],
    },
    {
      name: "a default that has unknown fields",
      input: withField({ ...withFields({ a: { type: "string" } }), default: { a: "x", b: 1 } }),
      want: [`${spec}: Invalid value: map[string]interface {}{"a":"x", "b":1}: must not have unknown fields`],
    },
    {
      name: "a default that preserves unknown fields",
      input: withField({ ...object, ...keeping, default: { b: [{ c: 1 }] } }),
      want: [],
    },
    {
      name: "a default with fields where none are allowed",
      input: withField({ ...object, ...keeping, additionalProperties: false, default: { b: 1 } }),
      want: [`${spec}: Invalid value: "b": .b in body is a forbidden property`],
    },
    {
      name: "a default that lacks what is required, though it has a default too",
      input: withField({
        ...withFields({ a: { type: "string" }, b: { type: "string", default: "x" } }),
        required: ["a", "b"],
        default: {},
      }),
      want: [`${spec}.a: Required value`, `${spec}.b: Required value`],
    },
    {
      name: "defaults beyond their bounds",
      input: withFields({
        a: { type: "string", maxLength: 1, pattern: "^b", default: "aa" },
        b: { type: "integer", minimum: 3, exclusiveMinimum: true, multipleOf: 2, default: 3 },
        c: { type: "string", enum: ["x", "y"], default: "z" },
        d: { type: "array", maxItems: 1, items: { type: "number", maximum: 1 }, default: [1, 2.5] },
        e: { ...withFields({ f: withFields({ g: { type: "string" } }) }), default: { f: { g: true } } },
        h: { "x-kubernetes-int-or-string": true, default: true },
        i: { type: "string", minLength: 2, default: "é" },
        j: { type: "string", pattern: "^b", default: "a" },
        k: { type: "array", minItems: 1, items: { type: "string" }, default: [] },
        l: { ...object, ...keeping, minProperties: 1, default: {} },
        m: { ...object, maxProperties: 1, additionalProperties: { type: "string" }, default: { a: "1", b: "2" } },
        n: { ...object, additionalProperties: { type: "string" }, default: { a: 1 } },
        o: { type: "integer", minimum: 2, maximum: 3.5, exclusiveMaximum: true, multipleOf: -1, default: 3 },
        p: { type: "integer", enum: [1, 2], default: 3 },
      }),
      want: [
        `${at}[a].default: Invalid value: "aa":  in body should be at most 1 chars long`,
        `${at}[b].default: Invalid value: 3:  in body should be a multiple of 2`,
        `${at}[b].default: Invalid value: 3:  in body should be greater than 3`,
        `${at}[c].default: Unsupported value: "z": supported values: "x", "y"`,
        `${at}[d].default.[1]: Invalid value: 2.5: [1] in body should be less than or equal to 1`,
        `${at}[d].default: Invalid value: 2:  in body should have at most 1 items`,
        `${at}[e].default.f.g: Invalid value: "boolean": f.g in body must be of type string: "boolean"`,
        `${at}[h].default: Invalid value: "boolean":  in body must be of type integer,string: "boolean"`,
        `${at}[i].default: Invalid value: "é":  in body should be at least 2 chars long`,
        `${at}[j].default: Invalid value: "a":  in body should match '^b'`,
        `${at}[k].default: Invalid value: 0:  in body should have at least 1 items`,
        `${at}[l].default: Invalid value: 1:  in body should have at least 1 properties`,
        `${at}[m].default: Invalid value: 1:  in body should have at most 1 properties`,
        `${at}[n].default.a: Invalid value: "integer": .a in body must be of type string: "integer"`,
        `${at}[o].default: Invalid value: -1: factor MultipleOf declared for  must be positive: -1`,
        `${at}[o].default: Invalid value: 3:  in body should be less than 3`,
        `${at}[p].default: Unsupported value: 3: supported values: "1", "2"`,
      ],
    },
    {
      name: "defaults of another format",
      input: withFields({
        a: { type: "string", format: "date-time", default: "yesterday" },
        b: { type: "string", format: "nothing-known", default: "yesterday" },
        c: { type: "string", format: "date", default: 5 },
        d: { type: "string", format: "date", default: true },
        e: { type: "integer", format: "int32", default: "5" },
      }),
      want: [
        `${at}[a].default: Invalid value: "yesterday":  in body must be of type date-time: "yesterday"`,
        `${at}[c].default: Invalid value: "int64":  in body must be of type date: "int64"`,
        `${at}[d].default: Invalid value: "":  in body must be of type date: ""`,
        `${at}[e].default: Invalid value: "string":  in body must be of type integer: "string"`,
      ],
    },
    {
      name: "defaults that logical operators refuse, for the reason of what fits best",
      input: withFields({
        a: { type: "string", default: "a", anyOf: [{ minLength: 2 }, { pattern: "b" }] },
        b: { type: "string", default: "a", oneOf: [{ minLength: 1 }, { pattern: "a" }] },
        c: { type: "string", default: "a", oneOf: [{ minLength: 2 }, { pattern: "b" }] },
        d: { type: "string", default: "a", allOf: [{ minLength: 1 }, { pattern: "b" }] },
        e: { type: "string", default: "a", not: { minLength: 1 } },
        f: {
          ...withFields({ x: { type: "integer" }, y: { type: "integer" } }),
          default: { x: 1, y: 1 },
          anyOf: [{ properties: { x: { minimum: 2 } } }, { properties: { x: { minimum: 1 }, y: { minimum: 3 } } }],
        },
        g: { type: "string", default: "a", anyOf: [{ minLength: 2 }, { minLength: 1 }], oneOf: [{ minLength: 1 }] },
      }),
      want: [
        `${at}[a].default: Invalid value: "": "" must validate at least one schema (anyOf)`,
        `${at}[a].default: Invalid value: "a":  in body should be at least 2 chars long`,
        `${at}[b].default: Invalid value: "": "" must validate one and only one schema (oneOf). Found 2 valid alternatives`,
        `${at}[c].default: Invalid value: "": "" must validate one and only one schema (oneOf). Found none valid`,
        `${at}[c].default: Invalid value: "a":  in body should be at least 2 chars long`,
        `${at}[d].default: Invalid value: "a":  in body should match 'b'`,
        `${at}[d].default: Invalid value: "": "" must validate all the schemas (allOf)`,
        `${at}[e].default: Invalid value: "": "" must not validate the schema (not)`,
        `${at}[f].default: Invalid value: "": "" must validate at least one schema (anyOf)`,
        `${at}[f].default.y: Invalid value: 1: y in body should be greater than or equal to 3`,
      ],
    },
    {
      name: "a default that a deep condition refuses, in a moment and in few words",
      input: withField({ type: "number", multipleOf: 0.1, default: 0.3, allOf: [deepConditions(60)] }),
      want: [
        `${spec}: Invalid value: 0.3:  in body should be greater than or equal to 1`,
        `${spec}: Invalid value: "": "" must validate all the schemas (allOf). None validated`,
      ],
    },
    {
      name: "an embedded resource whose default does not say what it is",
      input: withField({ ...embedded, ...keeping, default: { kind: "A" } }),
      want: [`${spec}.apiVersion: Required value: must not be empty`],
    },
    {
      name: "an embedded resource whose default says it wrongly, its metadata too",
      input: withField({
        ...embedded,
        ...keeping,
        default: { apiVersion: "a/b/c", kind: "A_", metadata: { name: "a/b", labels: { "a b": "x" } } },
      }),
      want: [
        `${spec}.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c`,
        `${spec}.kind: Invalid value: "A_": may have mixed case, but should otherwise match: ${dns}`,
        `${spec}.metadata.name: Invalid value: "a/b": may not contain '/'`,
        `${spec}.metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
      ],
    },
    {
      name: "embedded resources in a list, a map and a field, the first of which is unreadable",
      input: withField({
        ...withFields({
          a: { type: "array", items: { ...embedded, ...keeping } },
          b: { ...object, additionalProperties: { ...embedded, ...keeping } },
        }),
        default: { b: { c: {} }, a: [{ kind: 1 }] },
      }),
      want: [`${spec}.a[0].kind: Invalid value: 1: must be a string`],
    },
    {
      name: "an embedded resource without kind in a map",
      input: withField({
        ...object,
        additionalProperties: { ...embedded, ...keeping },
        default: { c: { apiVersion: "v1" } },
      }),
      want: [`${spec}[c].kind: Required value: must not be empty`],
    },
    {
      name: "metadata that is none",
      input: withField({ ...embedded, ...keeping, default: { apiVersion: "v1", kind: "A", metadata: { name: 1 } } }),
      want: [
        `${spec}.metadata: Invalid value: map[string]interface {}{"name":1}: json: cannot unmarshal number into Go struct field ObjectMeta.name of type string`,
      ],
    },
    {
      name: "defaults within the kind and the metadata of an embedded resource, by what becomes of the resource",
      input: withField({
        ...embedded,
        properties: {
          kind: { type: "string", default: "A_" },
          metadata: withFields({
            name: { type: "string", default: "a/b" },
            namespace: { type: "string", maxLength: 1, default: "ns" },
            finalizers: { type: "array", items: { type: "string", default: "a b" } },
            labels: { ...object, additionalProperties: { type: "string" }, default: { a: "1" } },
          }),
        },
      }),
      want: [
        `${at}[spec].properties[kind].default: Invalid value: "A_": must result in valid metadata: kind: Invalid value: "A_": may have mixed case, but should otherwise match: ${dns}`,
        `${at}[spec].properties[metadata].properties[name].default: Invalid value: "a/b": must result in valid metadata: metadata.name: Invalid value: "a/b": may not contain '/'`,
        `${at}[spec].properties[metadata].properties[namespace].default: Invalid value: "ns":  in body should be at most 1 chars long`,
        `${at}[spec].properties[metadata].properties[finalizers].items.default: Invalid value: "a b": must result in valid metadata: metadata.finalizers: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`,
      ],
    },
  ],
);
