import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";
import { additionalOf, isEmbedded, isPreserving, itemsOf, metaFields, propertyOf, type Schema } from "./schema.ts";

/**
 * Removes fields unknown to the schema. Does not modify the value; returns the value itself when there are none.
 * Source: pkg/apiserver/schema/pruning/algorithm.go
 */
export function prune(value: unknown, schema: Schema | undefined, isResource = false): unknown {
  if (Array.isArray(value)) {
    const items = keeping(schema) ?? (schema && itemsOf(schema));
    const pruned = value.map((item) => prune(item, items));
    return pruned.every((item, i) => item === value[i]) ? value : pruned;
  }
  if (!isJsonObject(value)) return value;
  const hasMeta = isResource || (schema !== undefined && isEmbedded(schema));
  const names = Object.keys(value);
  /** Set from the first changed field on. */
  let kept: [string, unknown][] | undefined;
  for (const [i, name] of names.entries()) {
    const item = value[name];
    const next = hasMeta && metaFields.includes(name) ? item : prunedField(item, name, schema);
    if (kept === undefined && next === item) continue;
    kept ??= names.slice(0, i).map((before) => [before, value[before]]);
    if (next !== unknownField) kept.push([name, next]);
  }
  return kept === undefined ? value : Object.fromEntries(kept);
}

const unknownField = Symbol("unknown field");

function prunedField(item: unknown, name: string, schema: Schema | undefined): unknown {
  const property = propertyOf(schema, name);
  if (property) return prune(item, property);
  const additional = schema?.additionalProperties;
  if (additional !== undefined && additional !== null && additional !== false) return prune(item, additionalOf(schema));
  return schema !== undefined && isPreserving(schema) ? item : unknownField;
}

/** The schema itself, applied to nested lists, when it preserves unknown fields and specifies no items. */
function keeping(schema: Schema | undefined): Schema | undefined {
  return schema !== undefined && isPreserving(schema) && !itemsOf(schema) ? schema : undefined;
}
