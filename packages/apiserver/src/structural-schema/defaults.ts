import { rawJson } from "@coxswain/apimachinery/objects/codec/json-encode";
import { requestEntityTooLarge } from "@coxswain/apimachinery/objects/errors/status-error";
import { deepClone } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";
import { anySchema, hasDefault, hasInside, itemsOf, knownFields, perSchema, type Schema } from "./schema.ts";

/**
 * Sets defaults, in place. A null in a non-nullable field counts as absent. The total size of the defaults is limited, because
 * a large default is copied for each item of a list.
 * @param above at the limit: `refuse` throws, for objects of clients; `stop` leaves the remaining defaults out, so that
 *   objects stored before the definition had these defaults stay readable
 * @throws RequestEntityTooLarge
 */
export function fillDefaults(value: unknown, schema: Schema | undefined, above: "refuse" | "stop"): void {
  if (schema !== undefined && setsDefaults(schema).any) fill(value, schema, { left: mostDefaultBytes, above });
}

const setsDefaults = perSchema((schema) => ({ any: anySchema(schema, hasDefault) }));

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

const sizeOfDefault = perSchema((schema) => ({ bytes: rawJson(schema.default).length }));

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
export function put(target: Record<string, unknown>, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value, enumerable: true, configurable: true, writable: true });
}
