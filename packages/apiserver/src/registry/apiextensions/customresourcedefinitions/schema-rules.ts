import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { forbiddenField, invalidValue, notSupported } from "@coxswain/apimachinery/errors/field-error";
import { child, index, mapKey } from "@coxswain/apimachinery/errors/field-path";
import type { JSONSchemaProps } from "@coxswain/apimachinery/schema/kinds/apiextensions/v1";
import { optionalOneOf } from "../../rules.ts";

type Schema = JSONSchemaProps & Record<string, unknown>;

/** How deep a schema may go; deeper ones are refused before anything walks them. */
const mostLevels = 200;

/** What OpenAPI has and custom resources do not, by field. Source: specStandardValidatorV3, ValidateCustomResourceDefinitionOpenAPISchema */
const unsupported: readonly [field: string, text: string][] = [
  ["definitions", "definitions is not supported"],
  ["dependencies", "dependencies is not supported"],
  ["id", "id is not supported"],
  ["additionalItems", "additionalItems is not supported"],
  ["patternProperties", "patternProperties is not supported"],
  ["$ref", "$ref is not supported"],
];
const types = ["array", "boolean", "integer", "number", "object", "string"];
const nested = ["allOf", "anyOf", "oneOf"] as const;

/** The words that a schema is made of. @param path `spec.versions[0].schema.openAPIV3Schema` */
export function validateSchema(schema: JSONSchemaProps, path: string): FieldError[] {
  const errors = (schema as Schema).nullable ? [forbiddenField(`${path}.nullable`, "nullable cannot be true at the root")] : [];
  return [...errors, ...walk(schema as Schema, path, 0)];
}

function walk(schema: Schema, path: string, level: number): FieldError[] {
  if (level > mostLevels) return [invalidValue(path, "", `schemas cannot be nested deeper than ${mostLevels} levels`)];
  const errors = [...ownWords(schema, path), ...extensions(schema, path)];
  const below = (value: unknown, at: string): void => {
    if (isObject(value)) errors.push(...walk(value as Schema, at, level + 1));
  };
  if (isObject(schema.additionalProperties)) below(schema.additionalProperties, child(path, "additionalProperties"));
  for (const [name, property] of Object.entries(schema.properties ?? {}))
    below(property, mapKey(child(path, "properties"), name));
  below(schema.not, child(path, "not"));
  for (const field of nested) {
    for (const [i, part] of ((schema[field] as unknown[] | undefined) ?? []).entries()) below(part, index(child(path, field), i));
  }
  if (Array.isArray(schema.items))
    errors.push(forbiddenField(child(path, "items"), "items must be a schema object and not an array"));
  else below(schema.items, child(path, "items"));
  return errors;
}

function ownWords(schema: Schema, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const { type, properties, additionalProperties, uniqueItems } = schema;
  if (uniqueItems) {
    const text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
    errors.push(forbiddenField(child(path, "uniqueItems"), text));
  }
  if (additionalProperties !== undefined && Object.keys(properties ?? {}).length > 0) {
    const allowed = additionalProperties !== false;
    if (allowed)
      errors.push(
        forbiddenField(child(path, "additionalProperties"), "additionalProperties and properties are mutual exclusive"),
      );
  }
  if ((additionalProperties as unknown) === false)
    errors.push(forbiddenField(child(path, "additionalProperties"), "additionalProperties cannot be set to false"));
  for (const [field, text] of unsupported) {
    const value = schema[field];
    const empty = value === undefined || value === null || value === "" || (isObject(value) && Object.keys(value).length === 0);
    if (!empty) errors.push(forbiddenField(child(path, field), text));
  }
  if (type === "null")
    errors.push(forbiddenField(child(path, "type"), "type cannot be set to null, use nullable as an alternative"));
  else if (type && !types.includes(type)) errors.push(notSupported(child(path, "type"), type, types));
  return errors;
}

/** Source: the checks of x-kubernetes-* in ValidateCustomResourceDefinitionOpenAPISchema */
function extensions(schema: Schema, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const at = (name: string): string => child(path, `x-kubernetes-${name}`);
  const get = (name: string): unknown => schema[`x-kubernetes-${name}`];
  if (get("preserve-unknown-fields") === false)
    errors.push(invalidValue(at("preserve-unknown-fields"), false, "must be true or undefined"));
  if (get("map-type") !== undefined) {
    if (schema.type !== "object") errors.push(typeMustBe(schema, path, "must be object if x-kubernetes-map-type is specified"));
    errors.push(...optionalOneOf(get("map-type") as string, ["atomic", "granular"], at("map-type")));
  }
  const listType = get("list-type") as string | undefined;
  const keys = (get("list-map-keys") as readonly string[] | undefined) ?? [];
  if (listType !== undefined) {
    if (schema.type !== "array") errors.push(typeMustBe(schema, path, "must be array if x-kubernetes-list-type is specified"));
    errors.push(...optionalOneOf(listType, ["atomic", "set", "map"], at("list-type")));
  }
  if (keys.length > 0 && listType !== "map") {
    errors.push(invalidValue(at("list-type"), listType ?? null, "must be map if x-kubernetes-list-map-keys is non-empty"));
  }
  if (listType === "map") errors.push(...mapKeys(schema, keys, path));
  if (listType === "set" && isObject(schema.items)) {
    const items = schema.items as Schema;
    if (items.nullable)
      errors.push(forbiddenField(child(path, "items", "nullable"), "cannot be nullable when x-kubernetes-list-type is set"));
    if (items.type === "object" && items["x-kubernetes-map-type"] !== "atomic") {
      const text = "must be atomic as item of a list with x-kubernetes-list-type=set";
      errors.push(invalidValue(child(path, "items", "x-kubernetes-map-type"), items["x-kubernetes-map-type"] ?? null, text));
    }
  }
  return errors;
}

/** The keys of a list that is a map are scalar fields of its items, which are always there. */
function mapKeys(schema: Schema, keys: readonly string[], path: string): FieldError[] {
  const at = child(path, "x-kubernetes-list-map-keys");
  if (keys.length === 0)
    return [{ type: "FieldValueRequired", field: at, detail: "must not be empty if x-kubernetes-list-type is map" }];
  if (!isObject(schema.items))
    return [
      { type: "FieldValueRequired", field: child(path, "items"), detail: "must have a schema if x-kubernetes-list-type is map" },
    ];
  const items = schema.items as Schema;
  const errors: FieldError[] = [];
  if (items.type !== "object")
    errors.push(
      invalidValue(
        child(path, "items", "type"),
        items.type ?? "",
        "must be object if parent array's x-kubernetes-list-type is map",
      ),
    );
  for (const [i, key] of keys.entries()) {
    const property = Object.hasOwn(items.properties ?? {}, key) ? (items.properties?.[key] as Schema) : undefined;
    if (!property) errors.push(invalidValue(index(at, i), key, "entries must all be names of item properties"));
    else if (property.type === "array" || property.type === "object")
      errors.push(
        invalidValue(
          mapKey(child(path, "items", "properties"), key),
          property.type,
          "must be a scalar type if parent array's x-kubernetes-list-type is map",
        ),
      );
    else if (!(items.required ?? []).includes(key) && property.default === undefined) {
      const text = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
      errors.push({
        type: "FieldValueRequired",
        field: mapKey(child(path, "items", "properties"), key) + ".default",
        detail: text,
      });
    }
    if (keys.indexOf(key) < i) errors.push({ type: "FieldValueDuplicate", field: index(at, i), badValue: key, detail: "" });
  }
  return errors;
}

function typeMustBe(schema: Schema, path: string, text: string): FieldError {
  const at = child(path, "type");
  return schema.type ? invalidValue(at, schema.type, text) : { type: "FieldValueRequired", field: at, detail: text };
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
