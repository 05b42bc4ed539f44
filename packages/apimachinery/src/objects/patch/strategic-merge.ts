/**
 * Strategic merge patch: a merge patch that also merges lists, by the merge key in the schema. Supports the directives
 * `$patch`, `$retainKeys`, `$deleteFromPrimitiveList/<field>` and `$setElementOrder/<field>`. Values of new fields are
 * copied with the directives in them, as upstream does before 1.28.
 * Source: apimachinery pkg/util/strategicpatch/patch.go, StrategicMergeMapPatch
 */

import { atOnce, type Steps } from "../../process/event-loop/steps.ts";
import { setOwn } from "../codec/json-parse.ts";
import { badRequest } from "../errors/status-error.ts";
import { deepClone } from "../meta/deep-equal.ts";
import type { FieldType, TypeDescriptor } from "../schema/descriptor.ts";
import { mergeField, mergeListField, structOf } from "./patch-schema.ts";
import {
  badPatchType,
  deleteDirective,
  type Fields,
  fieldOf,
  isObject,
  orderDirective,
  patchDirective,
  retainKeysDirective,
} from "./strategic-directives.ts";
import { checkOrder, expectList, hashable, mergeList, putInOrder } from "./strategic-lists.ts";

/**
 * @returns a new object that shares nothing with the arguments; not yet validated
 * @throws StatusError 400 or 422; Error (500, as upstream) for invalid directives and elements without merge key
 */
export function applyStrategicMerge(original: unknown, patch: unknown, descriptor: TypeDescriptor): unknown {
  if (!isObject(patch)) throw badRequest("invalid JSON document");
  return atOnce(mergeInSteps(isObject(original) ? deepClone(original) : {}, deepClone(patch), descriptor));
}

/** As `applyStrategicMerge`, but mutates both arguments; the rest of the patch is what upstream quotes in decoding errors. */
export function mergeInSteps(original: Fields, patch: Fields, descriptor: TypeDescriptor): Steps<Fields> {
  return mergeObject(original, patch, structOf(descriptor));
}

/** Mutates both arguments. */
function* mergeObject(original: Fields, patch: Fields, type: FieldType): Steps<Fields> {
  if (Object.hasOwn(patch, patchDirective)) return replaced(patch);
  applyRetainKeys(original, patch);
  yield* applyElementOrders(original, patch, type);
  // Go iterates in random order. Deletions from lists come first here, so that the result is deterministic.
  const deletions: string[] = [];
  const fields: string[] = [];
  for (const key of Object.keys(patch)) (key.startsWith(deleteDirective) ? deletions : fields).push(key);
  for (const key of deletions) yield* mergeValue(original, fieldOf(key, deleteDirective) || key, patch[key], true, type);
  for (const key of fields) yield* mergeValue(original, key, patch[key], false, type);
  return original;
}

/** @param isDeletion the value lists elements to remove */
function* mergeValue(original: Fields, key: string, value: unknown, isDeletion: boolean, type: FieldType): Steps<void> {
  if (value === null) {
    delete original[key];
    return;
  }
  const current = Object.hasOwn(original, key) ? original[key] : undefined;
  if (isObject(current) && isObject(value)) {
    const field = mergeField(type, key);
    setOwn(original, key, field.strategy === "replace" ? value : yield* mergeObject(current, value, field.inner));
  } else if (Array.isArray(current) && Array.isArray(value)) {
    setOwn(original, key, yield* mergeList(current, value, mergeListField(type, key), mergeObject, isDeletion));
  } else {
    setOwn(original, key, value);
  }
}

/** `$patch` of an object: `replace` returns the patch, `delete` an empty object. */
function replaced(patch: Fields): Fields {
  const directive = patch[patchDirective];
  if (directive === "delete") return {};
  if (directive !== "replace") throw badPatchType(directive, patch);
  delete patch[patchDirective];
  return patch;
}

/** `$retainKeys` lists the fields to keep; all others are removed. */
function applyRetainKeys(original: Fields, patch: Fields): void {
  if (!Object.hasOwn(patch, retainKeysDirective)) return;
  const list = patch[retainKeysDirective];
  delete patch[retainKeysDirective];
  if (!Array.isArray(list)) throw badRequest("invalid patch format of retainKeys");
  const kept = new Set<unknown>(list.map(hashable));
  for (const key of Object.keys(patch)) {
    const isDirective = key.startsWith(deleteDirective) || key.startsWith(orderDirective);
    if (patch[key] !== null && !isDirective && !kept.has(key)) throw badRequest("invalid patch format of retainKeys");
  }
  for (const key of Object.keys(original)) if (!kept.has(key)) delete original[key];
}

/** `$setElementOrder/x` with the patch of `x`: merges the lists and sorts the result. */
function* applyElementOrders(original: Fields, patch: Fields, type: FieldType): Steps<void> {
  for (const directive of Object.keys(patch)) {
    if (!directive.startsWith(orderDirective)) continue;
    const order = expectList(patch[directive]);
    delete patch[directive];
    const key = fieldOf(directive, orderDirective);
    const current = Object.hasOwn(original, key) ? expectList(original[key]) : undefined;
    const wanted = Object.hasOwn(patch, key) ? expectList(patch[key]) : undefined;
    const field = mergeListField(type, key);
    checkOrder(wanted ?? [], order, field.mergeKey);
    if (current === undefined && wanted === undefined) continue;
    const before = [...(current ?? [])];
    const merged = current && wanted ? yield* mergeList(current, wanted, field, mergeObject) : (current ?? wanted!);
    setOwn(original, key, yield* putInOrder(merged, order, before, wanted ?? [], field.mergeKey));
    delete patch[key];
  }
}
