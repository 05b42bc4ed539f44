/**
 * Applies a structural schema to an object without validating it: prunes unknown fields, drops nulls of non-nullable fields,
 * sets defaults and normalizes metadata.
 * Source: apiextensions-apiserver pkg/apiserver/schema/{pruning,defaulting,objectmeta},
 * pkg/apiserver/customresource_handler.go unstructuredSchemaCoercer
 */
import { decodeValue } from "@coxswain/apimachinery/codec/json-decode";
import { badRequest, requestEntityTooLarge } from "@coxswain/apimachinery/errors/status-error";
import { atOnce, type Steps } from "@coxswain/apimachinery/event-loop/steps";
import { deepClone } from "@coxswain/apimachinery/meta/deep-equal";
import { isJsonObject } from "@coxswain/apimachinery/meta/json-value";
import type { KubeObject, Unstructured } from "@coxswain/apimachinery/meta/types";
import { prune } from "./default-rules.ts";
import { objectMeta } from "./metadata.ts";
import { perSchema } from "./rules/types.ts";
import { additionalOf, anySchema, hasDefault, hasInside, itemsOf, knownFields, propertyOf, type Schema } from "./schema.ts";

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
export function* applySchemaInSteps(object: KubeObject, { schema, prunes }: SchemaApplication): Steps<void> {
  if (prunes) {
    replaceFields(object, prune(object, schema, true));
    yield;
    if (schema !== undefined) dropNulls(object, schema);
    yield;
  }
  coerceMetadata(object, schema, true, "refuse");
  yield;
  fillDefaults(object, schema, "refuse");
}

/**
 * Applies the schema to a stored object, in place, and never fails: invalid metadata fields are dropped. Defaults are set
 * separately, by the schema of the version it was stored in (`fillDefaults`).
 */
export function applySchemaToStored(object: KubeObject, application: SchemaApplication): void {
  atOnce(applySchemaToStoredInSteps(object, application));
}

/** Same as `applySchemaToStored`, but yields between passes over the object. */
export function* applySchemaToStoredInSteps(object: KubeObject, { schema, prunes }: SchemaApplication): Steps<void> {
  if (prunes) {
    replaceFields(object, prune(object, schema, true));
    yield;
    if (schema !== undefined) dropNulls(object, schema);
    yield;
  }
  coerceMetadata(object, schema, true, "drop");
  // Objects stored by older servers have no generation.
  object.metadata.generation ||= 1;
}

function replaceFields(object: KubeObject, pruned: unknown): void {
  if (pruned === object) return;
  const fields = object as unknown as Record<string, unknown>;
  const kept = pruned as Record<string, unknown>;
  for (const name of Object.keys(fields)) if (!Object.hasOwn(kept, name)) delete fields[name];
  for (const [name, value] of Object.entries(kept)) put(fields, name, value);
}

/**
 * Sets defaults, in place. A null in a non-nullable field counts as absent. The total size of the defaults is limited, because
 * a large default is copied for each item of a list.
 * @param above at the limit: `refuse` throws, for objects of clients; `stop` leaves the remaining defaults out, so that
 *   objects stored before the definition had these defaults stay readable
 * @throws RequestEntityTooLarge
 */
export function fillDefaults(value: unknown, schema: Schema | undefined, above: "refuse" | "stop"): void {
  if (schema !== undefined) fill(value, schema, { left: mostDefaultBytes, above });
}

/** Limit for all defaults of one object, as JSON; twice the default request limit of etcd. */
const mostDefaultBytes = 3 * 1024 * 1024;

interface DefaultBudget {
  left: number;
  readonly above: "refuse" | "stop";
}

function fill(value: unknown, schema: Schema, budget: DefaultBudget): void {
  if (Array.isArray(value)) {
    const items = itemsOf(schema);
    if (items === undefined || !(hasInside(items) || hasDefault(items))) return;
    for (const [i, item] of value.entries()) {
      if (isForbiddenNull(item, items) && hasDefault(items) && mayAdd(items, budget)) value[i] = deepClone(items.default);
      fill(value[i], items, budget);
    }
    return;
  }
  if (!isJsonObject(value)) return;
  for (const [name, property] of defaultsIn(schema).properties) {
    const isMissing = !Object.hasOwn(value, name) || isForbiddenNull(value[name], property);
    if (isMissing && mayAdd(property, budget)) put(value, name, deepClone(property.default));
  }
  for (const [name, part, isAdditional] of knownFields(value, schema)) {
    if (isAdditional && isForbiddenNull(value[name], part) && hasDefault(part) && mayAdd(part, budget))
      put(value, name, deepClone(part.default));
    fill(value[name], part, budget);
  }
}

/** Properties with a default, cached: filling each item of a list must not iterate over all properties of a large schema. */
const defaultsIn = perSchema((schema) => ({
  properties: Object.entries(schema.properties ?? {}).filter(([, property]) => hasDefault(property)),
}));

const sizeOfDefault = perSchema((schema) => ({ bytes: JSON.stringify(schema.default).length }));

function mayAdd(schema: Schema, budget: DefaultBudget): boolean {
  budget.left -= sizeOfDefault(schema).bytes;
  if (budget.left >= 0) return true;
  if (budget.above === "stop") return false;
  throw requestEntityTooLarge(`the defaults of the schema would add more than ${mostDefaultBytes} bytes to the object`);
}

/** Removes nulls of non-nullable fields without a default, in place. Source: PruneNonNullableNullsWithoutDefaults */
export function dropNulls(value: unknown, schema: Schema): void {
  if (Array.isArray(value)) {
    const items = itemsOf(schema);
    if (items !== undefined && hasInside(items)) for (const item of value) dropNulls(item, items);
    return;
  }
  if (!isJsonObject(value)) return;
  for (const [name, part] of knownFields(value, schema)) {
    if (isForbiddenNull(value[name], part) && !hasDefault(part)) delete value[name];
    else dropNulls(value[name], part);
  }
}

function isForbiddenNull(value: unknown, schema: Schema): boolean {
  return value === null && schema.nullable !== true;
}

/** Assignment that treats `__proto__` like any other name. */
function put(target: Record<string, unknown>, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value, enumerable: true, configurable: true, writable: true });
}

/** Normalizes the metadata of the object and of embedded resources. */
function coerceMetadata(value: unknown, schema: Schema | undefined, isResource: boolean, invalid: "refuse" | "drop"): void {
  if (Array.isArray(value)) {
    const items = schema && itemsOf(schema);
    if (items === undefined || !hasEmbedded(items).within) return;
    for (const item of value) coerceMetadata(item, items, isEmbedded(items), invalid);
    return;
  }
  if (!isJsonObject(value)) return;
  if (isResource) coerceOwn(value as unknown as Unstructured, invalid);
  if (schema === undefined || !hasEmbedded(schema).within) return;
  for (const [name, part] of knownFields(value, schema)) {
    if (isResource && name === "metadata") continue;
    coerceMetadata(value[name], part, isEmbedded(part), invalid);
  }
}

/** Whether a schema contains embedded resources, cached: most have none, and the object need not be walked. */
const hasEmbedded = perSchema((schema) => ({ within: anySchema(schema, isEmbedded) }));

function isEmbedded(schema: Schema): boolean {
  return schema["x-kubernetes-embedded-resource"] === true;
}

function coerceOwn(resource: Unstructured, invalid: "refuse" | "drop"): void {
  if (resource.metadata === undefined) return;
  try {
    resource.metadata = decodeValue(resource.metadata, objectMeta) as unknown as Unstructured["metadata"];
  } catch (err) {
    if (invalid === "refuse") throw badRequest((err as Error).message);
    resource.metadata = readableMetadata(resource.metadata);
  }
}

/** The decodable fields of stored metadata that was not validated when it was written. */
function readableMetadata(metadata: unknown): Unstructured["metadata"] {
  if (!isJsonObject(metadata)) return {};
  const readable = Object.entries(metadata).filter(([name, value]) => {
    try {
      decodeValue(Object.fromEntries([[name, value]]), objectMeta);
      return true;
    } catch {
      return false;
    }
  });
  return decodeValue(Object.fromEntries(readable), objectMeta) as unknown as Unstructured["metadata"];
}

/** Paths of the fields that pruning removes: `spec.replicas`, `spec.list[0].x`. Source: pruning.PruneWithOptions */
export function unknownFields(value: unknown, schema: Schema | undefined, path = "", isResource = true): string[] {
  if (Array.isArray(value)) {
    const items = schema && (itemsOf(schema) ?? (isPreserving(schema) ? schema : undefined));
    return value.flatMap((item, i) => unknownFields(item, items, `${path}[${i}]`, items !== undefined && isEmbedded(items)));
  }
  if (!isJsonObject(value)) return [];
  return Object.entries(value).flatMap(([name, field]) => {
    const at = path === "" ? name : `${path}.${name}`;
    if (isResource && ["apiVersion", "kind", "metadata"].includes(name)) return [];
    const below = schema && (propertyOf(schema, name) ?? additionalOf(schema));
    if (below !== undefined) return unknownFields(field, below, at, isEmbedded(below));
    if (schema?.additionalProperties === true || (schema !== undefined && isPreserving(schema))) return [];
    return [at];
  });
}

function isPreserving(schema: Schema): boolean {
  return schema["x-kubernetes-preserve-unknown-fields"] === true;
}
