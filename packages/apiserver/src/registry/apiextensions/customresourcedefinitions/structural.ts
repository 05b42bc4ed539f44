import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { forbiddenField, invalidValue, required } from "@coxswain/apimachinery/errors/field-error";
import { child, index, mapKey } from "@coxswain/apimachinery/errors/field-path";
import type { JSONSchemaProps } from "@coxswain/apimachinery/schema/kinds/apiextensions/v1";

type Schema = JSONSchemaProps & Record<string, unknown>;
type Level = "root" | "item" | "field";

const emptyTypeTexts: Readonly<Record<Level, string>> = {
  root: "must not be empty at the root",
  item: "must not be empty for specified array items",
  field: "must not be empty for specified object fields",
};

/**
 * A structural schema says the type of everything outside of logical operators, so that objects can be pruned and
 * defaulted by it alone. Schemas that are too deep have their own error.
 * Source: apiextensions-apiserver pkg/apiserver/schema/validation.go ValidateStructural
 */
export function validateStructural(schema: JSONSchemaProps, path: string): FieldError[] {
  return invariants(schema as Schema, "root", path, 0);
}

const mostLevels = 200;

function invariants(schema: Schema, level: Level, path: string, depth: number): FieldError[] {
  if (depth > mostLevels) return [];
  const { items, properties = {}, additionalProperties } = schema;
  const errors: FieldError[] = [];
  const inside = (value: unknown, at: string, as: Level): void => {
    if (isObject(value)) errors.push(...invariants(value as Schema, as, at, depth + 1));
  };
  if (isObject(items) && !Array.isArray(items)) inside(items, child(path, "items"), "item");
  for (const [name, property] of Object.entries(properties)) inside(property, mapKey(child(path, "properties"), name), "field");
  inside(additionalProperties, child(path, "additionalProperties"), "field");
  errors.push(...logical(schema, path, depth), ...extensionRules(schema, path), ...typeRules(schema, level, path));
  if (level === "root" && isObject(properties["metadata"])) errors.push(...metadataRules(properties["metadata"] as Schema, path));
  return errors;
}

function typeRules(schema: Schema, level: Level, path: string): FieldError[] {
  const at = child(path, "type");
  const type = schema.type ?? "";
  const anyType = schema["x-kubernetes-int-or-string"] === true || schema["x-kubernetes-preserve-unknown-fields"] === true;
  const errors: FieldError[] = [];
  if (type === "" && !anyType) errors.push(required(at, emptyTypeTexts[level]));
  if (level === "root" && type !== "" && type !== "object") errors.push(invalidValue(at, type, "must be object at the root"));
  if (type === "array" && !schema.items) errors.push(required(child(path, "items"), "must be specified"));
  if (schema["x-kubernetes-int-or-string"] === true && type !== "")
    errors.push(invalidValue(at, type, "must be empty if x-kubernetes-int-or-string is true"));
  return errors;
}

function extensionRules(schema: Schema, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const embedded = schema["x-kubernetes-embedded-resource"] === true;
  const preserving = schema["x-kubernetes-preserve-unknown-fields"] === true;
  if (embedded && schema.type !== "object") {
    const text = "must be object if x-kubernetes-embedded-resource is true";
    errors.push(schema.type ? invalidValue(child(path, "type"), schema.type, text) : required(child(path, "type"), text));
  }
  if (embedded && !preserving && Object.keys(schema.properties ?? {}).length === 0) {
    const text = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
    errors.push(required(child(path, "properties"), text));
  }
  if (preserving && schema["x-kubernetes-int-or-string"] === true) {
    const text = "must be false if x-kubernetes-int-or-string is true";
    errors.push(invalidValue(child(path, "x-kubernetes-preserve-unknown-fields"), true, text));
  }
  return errors;
}

/** The metadata of custom resources is always there; a schema restricts names alone. */
function metadataRules(metadata: Schema, path: string): FieldError[] {
  const at = child(path, "properties[metadata]");
  const others = Object.keys(metadata.properties ?? {}).filter((name) => name !== "name" && name !== "generateName");
  const text = "must not specify anything other than name and generateName, but metadata is implicitly specified";
  return others.length > 0 ? [forbiddenField(at, text)] : [];
}

/** Words that say what a value is belong outside of the operators; inside they only restrict. How empty each must be. */
const structuralWords: readonly [word: string, text: string][] = [
  ["type", "must be empty to be structural"],
  ["additionalProperties", "must be undefined to be structural"],
  ["default", "must be undefined to be structural"],
  ["title", "must be empty to be structural"],
  ["description", "must be empty to be structural"],
  ["nullable", "must be false to be structural"],
  ["x-kubernetes-preserve-unknown-fields", "must be false to be structural"],
  ["x-kubernetes-embedded-resource", "must be false to be structural"],
  ["x-kubernetes-int-or-string", "must be false to be structural"],
  ["x-kubernetes-list-map-keys", "must be empty to be structural"],
  ["x-kubernetes-list-type", "must be undefined to be structural"],
  ["x-kubernetes-map-type", "must be undefined to be structural"],
];

function logical(schema: Schema, path: string, depth: number): FieldError[] {
  const parts: { part: unknown; at: string }[] = [];
  for (const field of ["allOf", "anyOf", "oneOf"] as const) {
    for (const [i, part] of ((schema[field] as unknown[] | undefined) ?? []).entries())
      parts.push({ part, at: index(child(path, field), i) });
  }
  if (schema.not) parts.push({ part: schema.not, at: child(path, "not") });
  const intOrString = schema["x-kubernetes-int-or-string"] === true && isIntOrStringPattern(schema.anyOf);
  return parts.flatMap(({ part, at }) => {
    if (!isObject(part)) return [];
    // The one place where types stand inside: an integer or a string.
    if (intOrString && at.startsWith(child(path, "anyOf"))) return [];
    return restriction(part as Schema, schema, at, path, depth);
  });
}

function isIntOrStringPattern(anyOf: unknown): boolean {
  if (!Array.isArray(anyOf) || anyOf.length !== 2) return false;
  const shapes = (anyOf as Schema[]).map((part) => JSON.stringify(part));
  return shapes[0] === '{"type":"integer"}' && shapes[1] === '{"type":"string"}';
}

/** @param outer the schema that says the structure of what `part` restricts */
function restriction(part: Schema, outer: Schema | undefined, path: string, outerPath: string, depth: number): FieldError[] {
  if (depth > mostLevels) return [];
  const errors: FieldError[] = [];
  for (const [word, text] of structuralWords) {
    const value = part[word];
    if (value !== undefined && value !== null && value !== "" && value !== false)
      errors.push(forbiddenField(child(path, word), text));
  }
  for (const [name, property] of Object.entries(part.properties ?? {})) {
    const known = Object.hasOwn(outer?.properties ?? {}, name) ? (outer?.properties?.[name] as Schema) : undefined;
    const [at, outerAt] = [mapKey(child(path, "properties"), name), mapKey(child(outerPath, "properties"), name)];
    if (!known && !outer?.additionalProperties) errors.push(required(outerAt, `because it is defined in ${at}`));
    if (isObject(property)) errors.push(...restriction(property as Schema, known, at, outerAt, depth + 1));
  }
  if (isObject(part.items) && !Array.isArray(part.items)) {
    const known = isObject(outer?.items) ? (outer?.items as Schema) : undefined;
    const [at, outerAt] = [child(path, "items"), child(outerPath, "items")];
    if (!known) errors.push(required(outerAt, `because it is defined in ${at}`));
    errors.push(...restriction(part.items as Schema, known, at, outerAt, depth + 1));
  }
  for (const field of ["allOf", "anyOf", "oneOf"] as const) {
    for (const [i, inner] of ((part[field] as unknown[] | undefined) ?? []).entries())
      if (isObject(inner))
        errors.push(...restriction(inner as Schema, outer, index(child(path, field), i), outerPath, depth + 1));
  }
  if (isObject(part.not)) errors.push(...restriction(part.not as Schema, outer, child(path, "not"), outerPath, depth + 1));
  return errors;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}
