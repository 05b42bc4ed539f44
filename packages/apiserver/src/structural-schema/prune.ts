import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";
import { additionalOf, isEmbedded, isPreserving, itemsOf, metaFields, propertyOf, type Schema } from "./schema.ts";

/**
 * Removes fields unknown to the schema. Does not modify the value; returns the value itself when there are none.
 * Source: pkg/apiserver/schema/pruning/algorithm.go
 */
export function prune(value: unknown, schema: Schema | undefined, isResource = false): unknown {
  return pruned(value, schema, isResource, schema !== undefined && isPreserving(schema));
}

/** @param keeps unknown fields are preserved: by the schema, or by that of a list with the value in it */
function pruned(value: unknown, schema: Schema | undefined, isResource: boolean, keeps: boolean): unknown {
  if (Array.isArray(value)) {
    const items = schema && itemsOf(schema);
    const list = value.map((item) => pruned(item, items, false, keeps || (items !== undefined && isPreserving(items))));
    return list.every((item, i) => item === value[i]) ? value : list;
  }
  if (!isJsonObject(value)) return value;
  const hasMeta = isResource || (schema !== undefined && isEmbedded(schema));
  const names = Object.keys(value);
  /** Set from the first changed field on. */
  let kept: [string, unknown][] | undefined;
  for (const [i, name] of names.entries()) {
    const item = value[name];
    const next = hasMeta && metaFields.includes(name) ? item : prunedField(item, name, schema, keeps);
    if (kept === undefined && next === item) continue;
    kept ??= names.slice(0, i).map((before) => [before, value[before]]);
    if (next !== unknownField) kept.push([name, next]);
  }
  return kept === undefined ? value : Object.fromEntries(kept);
}

const unknownField = Symbol("unknown field");

function prunedField(item: unknown, name: string, schema: Schema | undefined, keeps: boolean): unknown {
  const property = propertyOf(schema, name);
  if (property) return prune(item, property);
  if (allowsOthers(schema)) return prune(item, additionalOf(schema));
  return keeps ? item : unknownField;
}

/**
 * Whether fields that are not properties are known. Also with `additionalProperties: false`, so that validation refuses them;
 * without a schema they lose the fields below them.
 */
function allowsOthers(schema: Schema | undefined): schema is Schema {
  return schema?.additionalProperties !== undefined && schema.additionalProperties !== null;
}

/** Paths reported for one object, as for built-in kinds: each becomes a header of the response. */
const mostUnknown = 100;

/** Paths of the fields that pruning removes, at most 100: `spec.replicas`, `spec.list[0].x`. Source: pruning.PruneWithOptions */
export function unknownFields(value: unknown, schema: Schema | undefined): string[] {
  const found: string[] = [];
  collect(value, schema, "", { isResource: true, keeps: schema !== undefined && isPreserving(schema), found });
  return found;
}

interface Collection {
  readonly isResource: boolean;
  /** As for `pruned`. */
  readonly keeps: boolean;
  readonly found: string[];
}

function collect(value: unknown, schema: Schema | undefined, path: string, { isResource, keeps, found }: Collection): void {
  if (found.length >= mostUnknown) return;
  const below = (item: unknown, part: Schema | undefined, at: string, isKept = false): void =>
    collect(item, part, at, {
      isResource: part !== undefined && isEmbedded(part),
      keeps: isKept || (part !== undefined && isPreserving(part)),
      found,
    });
  if (Array.isArray(value)) {
    const items = schema && itemsOf(schema);
    for (const [i, item] of value.entries()) below(item, items, `${path}[${i}]`, keeps);
    return;
  }
  if (!isJsonObject(value)) return;
  for (const name of Object.keys(value)) {
    if (found.length >= mostUnknown) return;
    if (isResource && metaFields.includes(name)) continue;
    const at = path === "" ? name : `${path}.${name}`;
    const property = propertyOf(schema, name);
    if (property !== undefined) below(value[name], property, at);
    else if (allowsOthers(schema)) below(value[name], additionalOf(schema), at);
    else if (!keeps) found.push(at);
  }
}
