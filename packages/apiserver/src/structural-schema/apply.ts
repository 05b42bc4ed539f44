/**
 * Applies a structural schema to an object without validating it: prunes unknown fields, drops nulls of non-nullable fields,
 * sets defaults and normalizes metadata.
 * Source: apiextensions-apiserver pkg/apiserver/schema/{pruning,defaulting,objectmeta},
 * pkg/apiserver/customresource_handler.go unstructuredSchemaCoercer
 */

import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { atOnce, type Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { dropNulls, fillDefaults, put } from "./defaults.ts";
import { coerceMetadata } from "./metadata.ts";
import { prune } from "./prune.ts";
import type { Schema } from "./schema.ts";

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
