/**
 * What a structural schema makes of an object, apart from refusing it: fields it does not know go, nulls where none may be
 * go, defaults come, and metadata gets its canonical form.
 * Source: apiextensions-apiserver pkg/apiserver/schema/{pruning,defaulting,objectmeta},
 * pkg/apiserver/customresource_handler.go unstructuredSchemaCoercer
 */
import { decodeValue } from "@coxswain/apimachinery/codec/json-decode";
import { badRequest, requestEntityTooLarge } from "@coxswain/apimachinery/errors/status-error";
import { deepClone } from "@coxswain/apimachinery/meta/deep-equal";
import { isJsonObject } from "@coxswain/apimachinery/meta/json-value";
import type { KubeObject, Unstructured } from "@coxswain/apimachinery/meta/types";
import { prune } from "../registry/apiextensions/customresourcedefinitions/default-rules.ts";
import { objectMeta } from "../registry/apiextensions/customresourcedefinitions/embedded-resources.ts";
import {
  additionalOf,
  hasDefault,
  hasInside,
  itemsOf,
  knownFields,
  propertyOf,
  type Schema,
} from "../registry/apiextensions/customresourcedefinitions/schemas.ts";
import { perSchema } from "../registry/apiextensions/customresourcedefinitions/validation-rules/rule-types.ts";

export interface SchemaApplication {
  /** undefined: the version has none, and nothing is known of its objects. */
  readonly schema: Schema | undefined;
  /** False: unknown fields stay, as older definitions want it. */
  readonly prunes: boolean;
}

/** An object of a client, in place. @throws BadRequest for metadata that is none */
export function applySchema(object: KubeObject, { schema, prunes }: SchemaApplication): void {
  if (prunes) replaceFields(object, prune(object, schema, true));
  if (prunes && schema !== undefined) dropNulls(object, schema);
  coerceMetadata(object, schema, true, "refuse");
  fillDefaults(object, schema, "refuse");
}

/** A stored object, in place: defaults by the version it was stored in, pruned by the one it is shown in. */
export function applySchemaToStored(object: KubeObject, { schema, prunes }: SchemaApplication): void {
  if (prunes) replaceFields(object, prune(object, schema, true));
  if (prunes && schema !== undefined) dropNulls(object, schema);
  coerceMetadata(object, schema, true, "drop");
  // Objects that older servers stored have none.
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
 * In place. A null where the schema wants no null is as good as nothing. A default may be as large as requests may be, and is
 * copied for each item of a list: there is a limit to what all of them add.
 * @param above what happens at the limit: an object of a client is refused; a stored one, which was written before the
 *   definition had these defaults, stays readable without the rest of them
 * @throws RequestEntityTooLarge
 */
export function fillDefaults(value: unknown, schema: Schema | undefined, above: "refuse" | "stop"): void {
  if (schema !== undefined) fill(value, schema, { left: mostDefaultBytes, above });
}

/** Of all defaults of one object, as JSON; etcd takes objects of half as much. */
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

/** The properties that have a default: a list may have as many objects as its schema has properties. */
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

/** In place: nulls of fields that may not be null and have no default. Source: PruneNonNullableNullsWithoutDefaults */
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

/** `__proto__` is a name like any other. */
function put(target: Record<string, unknown>, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value, enumerable: true, configurable: true, writable: true });
}

/** The metadata of the object itself and of those embedded in it. */
function coerceMetadata(value: unknown, schema: Schema | undefined, isResource: boolean, invalid: "refuse" | "drop"): void {
  if (Array.isArray(value)) {
    const items = schema && itemsOf(schema);
    if (items === undefined || !(hasInside(items) || isEmbedded(items))) return;
    for (const item of value) coerceMetadata(item, items, isEmbedded(items), invalid);
    return;
  }
  if (!isJsonObject(value)) return;
  if (isResource) coerceOwn(value as unknown as Unstructured, invalid);
  if (schema === undefined) return;
  for (const [name, part] of knownFields(value, schema)) {
    if (isResource && name === "metadata") continue;
    coerceMetadata(value[name], part, isEmbedded(part), invalid);
  }
}

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

/** Of metadata that was stored before anybody checked it, the fields that can be read. */
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

/** Paths of what pruning takes away: `spec.replicas`, `spec.list[0].x`. Source: pruning.PruneWithOptions */
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
