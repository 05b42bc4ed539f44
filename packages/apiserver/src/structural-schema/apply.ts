/**
 * Applies a structural schema to an object without validating it: prunes unknown fields, drops nulls of non-nullable fields,
 * sets defaults and normalizes metadata.
 * Source: apiextensions-apiserver pkg/apiserver/schema/{pruning,defaulting,objectmeta},
 * pkg/apiserver/customresource_handler.go unstructuredSchemaCoercer
 */

import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { atOnce, type Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { dropNulls, fillDefaults, put } from "./defaults.ts";
import { coerceMetadata } from "./metadata.ts";
import { prune } from "./prune.ts";
import { additionalOf, isEmbedded, isPreserving, itemsOf, metaFields, propertyOf, type Schema } from "./schema.ts";

/** The schema of one version and whether it prunes unknown fields. */
export interface SchemaApplication {
  /** undefined: the version has no schema. */
  readonly schema: Schema | undefined;
  /** false: unknown fields are preserved (`preserveUnknownFields: true` of older definitions). */
  readonly prunes: boolean;
}

/** Applies the schema to an object sent by a client, in place. @throws BadRequest for invalid metadata, RequestEntityTooLarge */
export function applySchema(object: KubeObject, application: SchemaApplication): void {
  atOnce(applySchemaInSteps(object, application));
}

/** Same as `applySchema`, but yields between passes over the object. */
export function* applySchemaInSteps(object: KubeObject, application: SchemaApplication): Steps<void> {
  yield* dropUnknown(object, application);
  coerceMetadata(object, application.schema, true, "refuse");
  yield;
  fillDefaults(object, application.schema, "refuse");
}

/**
 * Applies the schema to a stored object, in place, and never fails: invalid metadata fields are dropped. Defaults are set
 * separately, by the schema of the version it was stored in (`fillDefaults`). Yields between passes over the object.
 */
export function* applySchemaToStoredInSteps(object: KubeObject, application: SchemaApplication): Steps<void> {
  yield* dropUnknown(object, application);
  coerceMetadata(object, application.schema, true, "drop");
  // Objects stored by older servers have no generation.
  object.metadata.generation ||= 1;
}

/** Removes unknown fields, and nulls that the schema does not allow, where the version prunes. */
function* dropUnknown(object: KubeObject, { schema, prunes }: SchemaApplication): Steps<void> {
  if (!prunes) return;
  replaceFields(object, prune(object, schema, true));
  yield;
  if (schema !== undefined) dropNulls(object, schema);
  yield;
}

function replaceFields(object: KubeObject, pruned: unknown): void {
  if (pruned === object) return;
  const fields = object as unknown as Record<string, unknown>; // cast: read and pruned by field name
  const kept = pruned as Record<string, unknown>; // cast: pruning an object returns one
  for (const name of Object.keys(fields)) if (!Object.hasOwn(kept, name)) delete fields[name];
  for (const [name, value] of Object.entries(kept)) put(fields, name, value);
}

/** Paths reported for one object, as for built-in kinds: each becomes a header of the response. */
const mostUnknown = 100;

/** Paths of the fields that pruning removes, at most 100: `spec.replicas`, `spec.list[0].x`. Source: pruning.PruneWithOptions */
export function unknownFields(value: unknown, schema: Schema | undefined): string[] {
  const found: string[] = [];
  collectUnknown(value, schema, "", true, found);
  return found;
}

function collectUnknown(value: unknown, schema: Schema | undefined, path: string, isResource: boolean, found: string[]): void {
  if (found.length >= mostUnknown) return;
  if (Array.isArray(value)) {
    const items = schema && (itemsOf(schema) ?? (isPreserving(schema) ? schema : undefined));
    for (const [i, item] of value.entries()) {
      collectUnknown(item, items, `${path}[${i}]`, items !== undefined && isEmbedded(items), found);
    }
    return;
  }
  if (!isJsonObject(value)) return;
  for (const name of Object.keys(value)) {
    if (found.length >= mostUnknown) return;
    if (isResource && metaFields.includes(name)) continue;
    const at = path === "" ? name : `${path}.${name}`;
    const below = schema && (propertyOf(schema, name) ?? additionalOf(schema));
    if (below !== undefined) collectUnknown(value[name], below, at, isEmbedded(below), found);
    else if (schema?.additionalProperties !== true && (schema === undefined || !isPreserving(schema))) found.push(at);
  }
}
