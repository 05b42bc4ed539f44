import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { addErrors, formatFieldErrors, invalidValue } from "@coxswain/apimachinery/errors/field-error";
import { child, mapKey } from "@coxswain/apimachinery/errors/field-path";
import { deepEqual } from "@coxswain/apimachinery/meta/deep-equal";
import { isJsonObject } from "@coxswain/apimachinery/meta/json-value";
import { embeddedResourceFaults } from "./embedded-resources.ts";
import { schemaFaults } from "./schema-values.ts";
import { additionalOf, hasDefault, itemsOf, mostLevels, propertyOf, type Schema } from "./schemas.ts";

const metaFields = ["metadata", "apiVersion", "kind"];

/**
 * Defaults that a structural schema gives are valid by the schema they stand in, and have no fields it does not know.
 * Source: apiextensions-apiserver pkg/apiserver/schema/defaulting/validation.go ValidateDefaults
 * @param pruned whether unknown fields are looked for
 */
export function validateDefaults(schema: Schema, path: string, pruned: boolean): FieldError[] {
  return walk({ ...schema, "x-kubernetes-embedded-resource": true }, path, { pruned, level: 0 });
}

interface Place {
  readonly pruned: boolean;
  readonly level: number;
  /** Given: the value is a part of a resource's kind or metadata. */
  readonly within?: Surroundings;
}

interface Surroundings {
  /** Of the resource. */
  readonly schema: Schema;
  /** A resource that has the value where it belongs, and nothing else. */
  readonly resourceWith: (value: unknown) => Readonly<Record<string, unknown>>;
}

const typeMeta = { apiVersion: "validation/v1", kind: "Validation" };

function walk(schema: Schema, path: string, { pruned, level, within: outer }: Place): FieldError[] {
  if (level > mostLevels) return [];
  const isResource = schema["x-kubernetes-embedded-resource"] === true;
  const within = isResource ? undefined : outer;
  const errors = hasDefault(schema) ? ownDefault(schema, child(path, "default"), { pruned, isResource, within }) : [];
  const below = (part: Schema, at: string, place: Surroundings | undefined): void => {
    addErrors(errors, walk(part, at, { pruned, level: level + 1, ...(place ? { within: place } : {}) }));
  };
  const items = itemsOf(schema);
  if (items) below(items, child(path, "items"), within && { ...within, resourceWith: (value) => within.resourceWith([value]) });
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const field = (value: unknown): Record<string, unknown> => Object.fromEntries([[name, value]]);
    const place = isResource
      ? { schema, resourceWith: (value: unknown) => ({ ...typeMeta, ...field(value) }) }
      : within && { ...within, resourceWith: (value: unknown) => within.resourceWith(field(value)) };
    below(property, mapKey(child(path, "properties"), name), isResource && !metaFields.includes(name) ? undefined : place);
  }
  return errors;
}

function ownDefault(
  schema: Schema,
  path: string,
  { pruned, isResource, within }: { pruned: boolean; isResource: boolean; within: Surroundings | undefined },
): FieldError[] {
  const value = schema.default;
  if (within) {
    const faults = embeddedResourceFaults(within.resourceWith(value), within.schema, "", true);
    const text = `must result in valid metadata: ${formatFieldErrors(faults)}`;
    return faults.length > 0 ? [invalidValue(path, value, text)] : schemaFaults(value, schema, path);
  }
  const unknown = pruned && !deepEqual(prune(value, schema, isResource), value);
  const faults = embeddedResourceFaults(value, schema, path, isResource);
  return [
    ...(unknown ? [invalidValue(path, value, "must not have unknown fields")] : []),
    ...(faults.length > 0 ? faults : schemaFaults(value, schema, path)),
  ];
}

/** Without what the schema does not know. Source: pkg/apiserver/schema/pruning/algorithm.go */
export function prune(value: unknown, schema: Schema | undefined, isResource = false): unknown {
  const embedded = schema?.["x-kubernetes-embedded-resource"] === true || isResource;
  if (Array.isArray(value)) return value.map((item) => prune(item, keeping(schema) ?? (schema && itemsOf(schema))));
  if (!isJsonObject(value)) return value;
  const kept: [string, unknown][] = [];
  for (const [name, item] of Object.entries(value)) {
    const property = propertyOf(schema, name);
    const additional = schema?.additionalProperties;
    if (embedded && metaFields.includes(name)) kept.push([name, item]);
    else if (property) kept.push([name, prune(item, property)]);
    else if (additional !== undefined && additional !== null && additional !== false)
      kept.push([name, prune(item, additionalOf(schema as Schema))]);
    else if (schema?.["x-kubernetes-preserve-unknown-fields"] === true) kept.push([name, item]);
  }
  return Object.fromEntries(kept);
}

/** Lists below a schema that keeps unknown fields, and says nothing of items, stay as they are. */
function keeping(schema: Schema | undefined): Schema | undefined {
  return schema?.["x-kubernetes-preserve-unknown-fields"] === true && !itemsOf(schema) ? schema : undefined;
}
