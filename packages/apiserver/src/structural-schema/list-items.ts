/**
 * Uniqueness of items in lists of `x-kubernetes-list-type` set and map.
 * Source: apiextensions-apiserver pkg/apiserver/schema/listtype/validation.go
 */
import { encodeAny } from "@coxswain/apimachinery/objects/codec/json-encode";
import {
  addErrors,
  child,
  duplicate,
  type FieldError,
  index,
  invalidValue,
  mapKey,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { anySchema, hasInside, itemsOf, knownFields, perSchema, type Schema } from "./schema.ts";

/** Items that are compared in one step. */
const stepItems = 1024;

/** Errors for duplicate items in the value and everything below it. */
export function* repeatedItems(value: unknown, schema: Schema | undefined, path = ""): Steps<FieldError[]> {
  if (schema === undefined || !hasUniqueItems(schema).within) return [];
  if (Array.isArray(value)) {
    const errors = yield* ownFaults(value, schema, path);
    const items = itemsOf(schema);
    if (items === undefined || !hasInside(items)) return errors;
    for (const [i, item] of value.entries()) {
      addErrors(errors, yield* repeatedItems(item, items, index(path, i)));
      if (i % stepItems === stepItems - 1) yield;
    }
    return errors;
  }
  if (!isJsonObject(value)) return [];
  const errors: FieldError[] = [];
  for (const [name, part, isAdditional] of knownFields(value, schema)) {
    const field = value[name];
    if (typeof field !== "object" || field === null) continue;
    addErrors(errors, yield* repeatedItems(field, part, isAdditional ? mapKey(path, name) : child(path, name)));
  }
  return errors;
}

/** Whether a schema contains lists with unique items, cached: most have none, and the object need not be walked. */
const hasUniqueItems = perSchema((schema) => ({ within: anySchema(schema, isUnique) }));

function isUnique(schema: Schema): boolean {
  const type = schema["x-kubernetes-list-type"];
  return type === "set" || type === "map";
}

function* ownFaults(list: readonly unknown[], schema: Schema, path: string): Steps<FieldError[]> {
  const type = schema["x-kubernetes-list-type"];
  if (type === "set") return (yield* repeated(list)).map((i) => duplicate(index(path, i), list[i]));
  if (type !== "map") return [];
  const wrong = list.findIndex((item) => item !== null && !isJsonObject(item));
  if (wrong >= 0) return [invalidValue(index(path, wrong), list[wrong], "must be an object for an array of list-type map")];
  yield;
  const keys = list.map((item) => keyOf(item, schema["x-kubernetes-list-map-keys"] ?? []));
  yield;
  return (yield* repeated(keys)).map((i) => duplicate(index(path, i), keys[i]));
}

/** Identity of an item in a map list; keys that the item lacks are left out. */
function keyOf(item: unknown, names: readonly string[]): Record<string, unknown> {
  if (!isJsonObject(item)) return {};
  return Object.fromEntries(names.filter((name) => Object.hasOwn(item, name)).map((name) => [name, item[name]]));
}

/** Index of the second occurrence of each duplicate value. */
function* repeated(values: readonly unknown[]): Steps<number[]> {
  const times = new Map<string, number>();
  const second: number[] = [];
  for (const [i, value] of values.entries()) {
    const text = encodeAny(value);
    const before = times.get(text) ?? 0;
    times.set(text, before + 1);
    if (before === 1) second.push(i);
    if (i % stepItems === stepItems - 1) yield;
  }
  return second;
}
