import type { FieldError } from "@coxswain/apimachinery/errors/field-error";
import { invalidValue, required } from "@coxswain/apimachinery/errors/field-error";
import { child, mapKey } from "@coxswain/apimachinery/errors/field-path";
import { deepEqual } from "@coxswain/apimachinery/meta/deep-equal";
import { schemaFaults } from "./schema-values.ts";
import { additionalOf, hasDefault, isObject, itemsOf, mostLevels, propertyOf, type Schema } from "./schemas.ts";

const metaFields = ["metadata", "apiVersion", "kind"];

/**
 * Defaults that a structural schema gives are valid by the schema they stand in, and have no fields it does not know.
 * Source: apiextensions-apiserver pkg/apiserver/schema/defaulting/validation.go ValidateDefaults
 * @param pruned whether unknown fields are looked for
 */
export function validateDefaults(schema: Schema, path: string, pruned: boolean): FieldError[] {
  return walk(schema, path, { pruned, isResource: true, insideMeta: false, level: 0 });
}

interface Place {
  readonly pruned: boolean;
  readonly isResource: boolean;
  readonly insideMeta: boolean;
  readonly level: number;
}

function walk(schema: Schema, path: string, { pruned, isResource, insideMeta, level }: Place): FieldError[] {
  if (level > mostLevels) return [];
  const inMeta = insideMeta && !isResource;
  const errors = hasDefault(schema) ? ownDefault(schema, child(path, "default"), { pruned, isResource, inMeta }) : [];
  const below = (part: Schema, at: string, meta: boolean): void => {
    const embedded = part["x-kubernetes-embedded-resource"] === true;
    errors.push(...walk(part, at, { pruned, isResource: embedded, insideMeta: meta, level: level + 1 }));
  };
  const items = itemsOf(schema);
  if (items) below(items, child(path, "items"), inMeta);
  for (const [name, property] of Object.entries(schema.properties ?? {}))
    below(property, mapKey(child(path, "properties"), name), inMeta || (isResource && metaFields.includes(name)));
  return errors;
}

function ownDefault(
  schema: Schema,
  path: string,
  { pruned, isResource, inMeta }: { pruned: boolean; isResource: boolean; inMeta: boolean },
): FieldError[] {
  const value = schema.default;
  const errors: FieldError[] = [];
  if (pruned && !inMeta && !deepEqual(prune(value, schema, isResource), value))
    errors.push(invalidValue(path, value, "must not have unknown fields"));
  const meta = isResource && !inMeta ? resourceFaults(value, path) : [];
  return [...errors, ...(meta.length > 0 ? meta : schemaFaults(value, schema, path))];
}

/** An embedded resource says what it is. Source: pkg/apiserver/schema/objectmeta/validation.go */
function resourceFaults(value: unknown, path: string): FieldError[] {
  if (!isObject(value)) return [];
  return ["apiVersion", "kind"]
    .filter((field) => typeof value[field] !== "string" || value[field] === "")
    .map((field) => required(child(path, field), "must not be empty"));
}

/** Without what the schema does not know. Source: pkg/apiserver/schema/pruning/algorithm.go */
export function prune(value: unknown, schema: Schema | undefined, isResource = false): unknown {
  const embedded = schema?.["x-kubernetes-embedded-resource"] === true || isResource;
  if (Array.isArray(value)) return value.map((item) => prune(item, keeping(schema) ?? (schema && itemsOf(schema))));
  if (!isObject(value)) return value;
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
