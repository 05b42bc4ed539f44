/**
 * Strategic merge patch: a merge patch that knows from the schema which lists are merged, and by which key; with the
 * directives `$patch`, `$retainKeys`, `$deleteFromPrimitiveList/<field>` and `$setElementOrder/<field>`. What is new to the
 * object is taken as it is, also directives in it, as in every version before 1.28.
 * Source: apimachinery pkg/util/strategicpatch/patch.go, StrategicMergeMapPatch
 */
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
 * @returns a new object that shares nothing with the arguments, which are left as they were; not yet checked by schema
 * @throws StatusError 400 or 422; Error (500 upstream too) for directives that are none and elements without merge key
 */
export function applyStrategicMerge(original: unknown, patch: unknown, descriptor: TypeDescriptor): unknown {
  if (!isObject(patch)) throw badRequest("invalid JSON document");
  return mergeInto(isObject(original) ? deepClone(original) : {}, deepClone(patch), descriptor);
}

/** The same with both arguments used up; of the patch stays what upstream quotes when the result is no such object. */
export function mergeInto(original: Fields, patch: Fields, descriptor: TypeDescriptor): Fields {
  return mergeObject(original, patch, structOf(descriptor));
}

/** Both are consumed. */
function mergeObject(original: Fields, patch: Fields, type: FieldType): Fields {
  if (Object.hasOwn(patch, patchDirective)) return replaced(patch);
  applyRetainKeys(original, patch);
  applyElementOrders(original, patch, type);
  // Go visits them in no order; so that an answer is always the same, what is deleted from a list goes first.
  const [deletions, fields] = [[] as string[], [] as string[]];
  for (const key of Object.keys(patch)) (key.startsWith(deleteDirective) ? deletions : fields).push(key);
  for (const key of deletions) mergeValue(original, fieldOf(key, deleteDirective) || key, patch[key], true, type);
  for (const key of fields) mergeValue(original, key, patch[key], false, type);
  return original;
}

/** @param isDeletion whether the value lists what is to go */
function mergeValue(original: Fields, key: string, value: unknown, isDeletion: boolean, type: FieldType): void {
  if (value === null) {
    delete original[key];
    return;
  }
  const current = Object.hasOwn(original, key) ? original[key] : undefined;
  if (isObject(current) && isObject(value)) {
    const field = mergeField(type, key);
    setOwn(original, key, field.strategy === "replace" ? value : mergeObject(current, value, field.inner));
  } else if (Array.isArray(current) && Array.isArray(value)) {
    setOwn(original, key, mergeList(current, value, mergeListField(type, key), mergeObject, isDeletion));
  } else {
    setOwn(original, key, value);
  }
}

/** `$patch` of an object: `replace` takes the patch as it is, `delete` leaves nothing. */
function replaced(patch: Fields): Fields {
  const directive = patch[patchDirective];
  if (directive === "delete") return {};
  if (directive !== "replace") throw badPatchType(directive, patch);
  delete patch[patchDirective];
  return patch;
}

/** `$retainKeys` names every field that may stay; the others go. */
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

/** `$setElementOrder/x` together with the patch of `x`: merges both lists and puts the result in order. */
function applyElementOrders(original: Fields, patch: Fields, type: FieldType): void {
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
    const merged = current && wanted ? mergeList(current, wanted, field, mergeObject) : (current ?? (wanted as unknown[]));
    setOwn(original, key, putInOrder(merged, order, before, wanted ?? [], field.mergeKey));
    delete patch[key];
  }
}
