import { atOnce } from "@coxswain/apimachinery/process/event-loop/steps";
import { testRefusals } from "../testing/refusals.ts";
import { type SchemaOptions, validatingSchema } from "./keywords.ts";
import type { Schema } from "./schema.ts";

const text = { type: "string" };
const object = { type: "object" };
const atomic = { ...object, "x-kubernetes-map-type": "atomic" };
const set = (items: unknown): object => ({ type: "array", "x-kubernetes-list-type": "set", items });
const keyed = (items: unknown, ...keys: string[]): object => ({
  ...{ type: "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys },
  items,
});
const withKey = (key: object, more: object = {}): object => ({ ...object, properties: { k: key }, ...more });
const strict = { validTypes: true, atomicSets: true, safeMapKeys: true };
const lenient = { validTypes: false, atomicSets: false, safeMapKeys: false };

interface Input {
  readonly field: object;
  readonly options?: SchemaOptions;
}

const becauseKey = "this property is in x-kubernetes-list-map-keys, so it";
const inSet = "must be atomic as item of a list with x-kubernetes-list-type=set";

testRefusals<Input>(
  ({ field, options = strict }) => atOnce(validatingSchema({ ...object, properties: { f: field } } as Schema, "", options)),
  [
    {
      name: "fields and any others",
      input: { field: { ...object, properties: { a: text }, additionalProperties: true } },
      want: [],
    },
    {
      name: "fields and no others",
      input: { field: { ...object, properties: { a: text }, additionalProperties: false } },
      want: ["properties[f].additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"],
    },
    {
      name: "an unknown type as the second of the items' schemas",
      input: { field: { type: "array", items: [text, { type: "text" }] } },
      want: [
        "properties[f].items: Forbidden: items must be a schema object and not an array",
        'properties[f].items[1].type: Unsupported value: "text": supported values: "array", "boolean", "integer", "number", "object", "string"',
      ],
    },
    {
      name: "null as a type, also where the stored definition has unknown types",
      input: { field: { type: "null" }, options: lenient },
      want: ["properties[f].type: Forbidden: type cannot be set to null, use nullable as an alternative"],
    },
    {
      name: "an unknown type where the stored definition has one",
      input: { field: { type: "text" }, options: lenient },
      want: [],
    },
    { name: "a set of objects where the stored definition has one", input: { field: set(object), options: lenient }, want: [] },
    {
      name: "a set that may hold null where the stored definition has one",
      input: { field: set({ ...text, nullable: true }), options: lenient },
      want: [],
    },
    { name: "a set of scalars, of atomic objects and of atomic lists", input: { field: set(text) }, want: [] },
    { name: "a set of atomic objects", input: { field: set(atomic) }, want: [] },
    { name: "a set of lists of no type", input: { field: set({ type: "array", items: text }) }, want: [] },
    {
      name: "a set of atomic lists",
      input: { field: set({ type: "array", "x-kubernetes-list-type": "atomic", items: text }) },
      want: [],
    },
    {
      name: "a set of granular objects",
      input: { field: set({ ...object, "x-kubernetes-map-type": "granular" }) },
      want: [`properties[f].items.x-kubernetes-map-type: Invalid value: "null": ${inSet}`],
    },
    {
      name: "a set of objects that do not say how they are merged",
      input: { field: set(object) },
      want: [`properties[f].items.x-kubernetes-map-type: Invalid value: "null": ${inSet}`],
    },
    {
      name: "keys of a list of no type",
      input: { field: { type: "array", items: text, "x-kubernetes-list-map-keys": ["k"] } },
      want: ["properties[f].x-kubernetes-list-type: Required value: must be map if x-kubernetes-list-map-keys is non-empty"],
    },
    {
      name: "a set that may hold null",
      input: { field: set({ ...text, nullable: true }) },
      want: ["properties[f].items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is set"],
    },
    {
      name: "keys of a set",
      input: { field: { ...set(text), "x-kubernetes-list-map-keys": ["k"] } },
      want: [
        'properties[f].x-kubernetes-list-type: Invalid value: "set": must be map if x-kubernetes-list-map-keys is non-empty',
      ],
    },
    {
      name: "keys and no items",
      input: { field: keyed(null, "k") },
      want: ["properties[f].items: Required value: must have a schema if x-kubernetes-list-type is map"],
    },
    {
      name: "a key that is a list",
      input: { field: keyed(withKey({ type: "array", items: text }, { required: ["k"] }), "k") },
      want: [
        `properties[f].items.properties[k].type: Invalid value: "object": must be a scalar type if parent array's x-kubernetes-list-type is map`,
      ],
    },
    { name: "a key that is required", input: { field: keyed(withKey(text, { required: ["k"] }), "k") }, want: [] },
    { name: "a key that has a default", input: { field: keyed(withKey({ ...text, default: "a" }), "k") }, want: [] },
    {
      name: "a key that neither is required nor has a default, beside one that does",
      input: { field: keyed({ ...object, properties: { j: { ...text, default: "a" }, k: text } }, "j", "k") },
      want: [
        `properties[f].items.properties[k].default: Required value: ${becauseKey} must have a default or be a required property`,
      ],
    },
    {
      name: "a default of null for a key, which is none",
      input: { field: keyed(withKey({ ...text, default: null }), "k") },
      want: [
        `properties[f].items.properties[k].default: Required value: ${becauseKey} must have a default or be a required property`,
      ],
    },
    {
      name: "an unknown kind of map",
      input: { field: { ...object, "x-kubernetes-map-type": "sparse" } },
      want: ['properties[f].x-kubernetes-map-type: Unsupported value: "sparse": supported values: "atomic", "granular"'],
    },
    {
      name: "the same key twice",
      input: { field: keyed(withKey(text, { required: ["k"] }), "k", "k") },
      want: ['properties[f].x-kubernetes-list-map-keys: Invalid value: []string{"k", "k"}: must not contain duplicate entries'],
    },
    {
      name: "a key that may be null",
      input: { field: keyed(withKey({ ...text, nullable: true }, { required: ["k"] }), "k") },
      want: [
        "properties[f].items.properties[k].nullable: Forbidden: this property is in x-kubernetes-list-map-keys, so it cannot be nullable",
      ],
    },
    {
      name: "a kind of map without the type of an object",
      input: { field: { "x-kubernetes-map-type": "atomic", "x-kubernetes-preserve-unknown-fields": true } },
      want: ["properties[f].type: Required value: must be object if x-kubernetes-map-type is specified"],
    },
    {
      name: "a default within an embedded resource's metadata, not within that of the resource itself",
      input: {
        field: {
          ...object,
          "x-kubernetes-embedded-resource": true,
          properties: { metadata: withKey({ ...text, default: "a" }) },
        },
      },
      want: [],
    },
    {
      name: "a resource within the metadata of an embedded one",
      input: {
        field: {
          ...{ ...object, "x-kubernetes-embedded-resource": true },
          properties: { metadata: withKey({ ...object, "x-kubernetes-embedded-resource": true }) },
        },
      },
      want: [
        "properties[f].properties[metadata].properties[k].x-kubernetes-embedded-resource: Forbidden: must not be used inside of resource meta",
      ],
    },
  ],
);
