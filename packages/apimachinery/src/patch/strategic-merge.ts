import { setOwn } from "../codec/json-parse.ts";
import { badRequest, genericServerResponse } from "../errors/status-error.ts";
import { deepClone } from "../meta/deep-equal.ts";
import type { FieldType, TypeDescriptor } from "../schema/descriptor.ts";
import { identifyBy, mergeOrder, partition } from "./element-order.ts";
import { patchField, structOf } from "./patch-schema.ts";

type Fields = Record<string, unknown>;

export const patchDirective = "$patch";
export const retainKeysDirective = "$retainKeys";
export const deletePrefix = "$deleteFromPrimitiveList/";
export const orderPrefix = "$setElementOrder/";

/**
 * Strategic merge patch: a merge patch that knows from the schema which lists are merged, and by which key; with the
 * directives `$patch`, `$retainKeys`, `$deleteFromPrimitiveList/<field>` and `$setElementOrder/<field>`.
 * @returns a new object that shares nothing with the arguments, which are left as they were; not yet checked by schema
 * @throws StatusError 400 or 422; Error (500 upstream too) for directives that are none and elements without merge key
 * Source: apimachinery pkg/util/strategicpatch/patch.go, StrategicMergeMapPatch
 */
export function applyStrategicMerge(original: unknown, patch: unknown, descriptor: TypeDescriptor): unknown {
  if (!isObject(patch)) throw badRequest("invalid JSON document");
  return mergeObject(isObject(original) ? deepClone(original) : {}, deepClone(patch), structOf(descriptor));
}

/** Both are consumed. */
function mergeObject(original: Fields, patch: Fields, type: FieldType | undefined): Fields {
  if (Object.hasOwn(patch, patchDirective)) return replaced(patch);
  applyRetainKeys(original, patch);
  applyElementOrders(original, patch, type);
  for (const key of Object.keys(patch)) {
    const isDeletion = key.startsWith(deletePrefix);
    mergeField(original, isDeletion ? key.slice(deletePrefix.length) : key, patch[key], isDeletion, type);
  }
  return original;
}

function mergeField(original: Fields, key: string, value: unknown, isDeletion: boolean, type: FieldType | undefined): void {
  if (value === null) {
    delete original[key];
    return;
  }
  const current = Object.hasOwn(original, key) ? original[key] : undefined;
  if (isObject(current) && isObject(value)) {
    const field = patchField(type, key);
    setOwn(original, key, field.strategy === "replace" ? value : mergeObject(current, value, field.inner));
  } else if (Array.isArray(current) && Array.isArray(value)) {
    setOwn(original, key, mergeListField(current, value, key, isDeletion, type));
  } else if (!isDeletion) {
    setOwn(original, key, withoutDirectives(value));
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
  const kept = new Set<unknown>(list);
  for (const key of Object.keys(patch)) {
    const isDirective = key.startsWith(deletePrefix) || key.startsWith(orderPrefix);
    if (patch[key] !== null && !isDirective && !kept.has(key)) throw badRequest("invalid patch format of retainKeys");
  }
  for (const key of Object.keys(original)) if (!kept.has(key)) delete original[key];
}

/** `$setElementOrder/x` together with the patch of `x`: merges both lists and puts the result in order. */
function applyElementOrders(original: Fields, patch: Fields, type: FieldType | undefined): void {
  for (const directive of Object.keys(patch)) {
    if (!directive.startsWith(orderPrefix)) continue;
    const key = directive.slice(orderPrefix.length);
    const order = patch[directive];
    delete patch[directive];
    const current = Object.hasOwn(original, key) ? original[key] : undefined;
    const wanted = Object.hasOwn(patch, key) ? patch[key] : undefined;
    if (
      !Array.isArray(order) ||
      (current !== undefined && !Array.isArray(current)) ||
      (wanted !== undefined && !Array.isArray(wanted))
    ) {
      if (wanted === null) continue;
      throw badRequest("invalid patch format of setElementOrder list");
    }
    const { mergeKey } = patchField(type, key);
    if (wanted !== undefined) checkOrder(wanted, order, mergeKey);
    if (current === undefined && wanted === undefined) continue;
    const merged =
      wanted === undefined
        ? (current as unknown[])
        : current === undefined
          ? (withoutDirectives(wanted) as unknown[])
          : mergeListField(current, wanted, key, false, type);
    requireMergeKey(mergeKey, merged, order);
    const identify = identifyBy(mergeKey);
    const [fromPatch, serverOnly] = partition(merged, order, identify);
    setOwn(original, key, mergeOrder(fromPatch, serverOnly, order, current ?? [], identify));
    delete patch[key];
  }
}

/** What the patch adds must be in the order list, in the same order. */
function checkOrder(list: readonly unknown[], order: readonly unknown[], mergeKey: string | undefined): void {
  const added = list.filter((item) => !(isObject(item) && item[patchDirective] === "delete"));
  requireMergeKey(mergeKey, added, order);
  const identify = identifyBy(mergeKey);
  let at = 0;
  for (const item of added) {
    const id = identify(item);
    while (at < order.length && identify(order[at]) !== id) at++;
    if (at++ >= order.length) {
      throw new Error(`The order in patch list:\n${goText(list)}\n doesn't match $setElementOrder list:\n${goText(order)}\n`);
    }
  }
}

function mergeListField(
  current: unknown[],
  patch: unknown[],
  key: string,
  isDeletion: boolean,
  type: FieldType | undefined,
): unknown[] {
  const field = patchField(type, key);
  if (field.strategy !== "merge" && !isDeletion) return withoutDirectives(patch) as unknown[];
  return mergeList(current, patch, field.inner, field.mergeKey, isDeletion, key);
}

function mergeList(
  current: unknown[],
  patch: unknown[],
  elementType: FieldType | undefined,
  mergeKey: string | undefined,
  isDeletion: boolean,
  name: string,
): unknown[] {
  if (current.length === 0 && patch.length === 0) return current;
  const first = current[0] ?? patch[0];
  if (Array.isArray(first)) throw unprocessable("lists of lists are not supported");
  if (!isObject(first)) {
    if (isDeletion) {
      const gone = new Set(patch);
      return current.filter((item) => !gone.has(item));
    }
    const merged = [...new Set([...current, ...patch])];
    const identify = identifyBy(undefined);
    const [fromPatch, serverOnly] = partition(merged, patch, identify);
    return mergeOrder(fromPatch, serverOnly, patch, current, identify);
  }
  if (mergeKey === undefined) throw new Error(`cannot merge lists without merge key for ${name}`);
  const identify = identifyBy(mergeKey);
  const { kept, additions, replaces } = applyElementDirectives(current, patch, mergeKey);
  const merged = replaces ? additions : mergeElements(kept, additions, mergeKey, elementType);
  const order = replaces ? [] : additions;
  const [fromPatch, serverOnly] = partition(merged, order, identify);
  return mergeOrder(fromPatch, serverOnly, order, replaces ? additions : kept, identify);
}

/** Elements with `$patch`: `delete` removes what has their merge key, `replace` takes the patch's other elements alone. */
function applyElementDirectives(
  current: unknown[],
  patch: readonly unknown[],
  mergeKey: string,
): { kept: unknown[]; additions: unknown[]; replaces: boolean } {
  const additions: unknown[] = [];
  const deleted = new Set<string>();
  const identify = identifyBy(mergeKey);
  let replaces = false;
  for (const item of patch) {
    if (!isObject(item)) throw new Error(`expecting an element to be an object, got ${typeof item}`);
    if (!Object.hasOwn(item, patchDirective)) {
      additions.push(item);
      continue;
    }
    switch (item[patchDirective]) {
      case "delete":
        requireMergeKey(mergeKey, [item]);
        deleted.add(identify(item));
        break;
      case "replace":
        replaces = true;
        break;
      case "merge":
        throw unprocessable("merging lists cannot yet be specified in the patch");
      default:
        throw badPatchType(item[patchDirective], item);
    }
  }
  const kept = deleted.size === 0 ? current : current.filter((item) => !isObject(item) || !deleted.has(identify(item)));
  return { kept, additions, replaces };
}

function mergeElements(
  current: readonly unknown[],
  additions: readonly unknown[],
  mergeKey: string,
  type: FieldType | undefined,
): unknown[] {
  requireMergeKey(mergeKey, additions, current);
  const identify = identifyBy(mergeKey);
  const merged = [...current];
  const position = new Map<string, number>();
  for (const [at, item] of merged.entries()) if (!position.has(identify(item))) position.set(identify(item), at);
  for (const item of additions) {
    const id = identify(item);
    const at = position.get(id);
    if (at === undefined) {
      position.set(id, merged.push(withoutDirectives(item)) - 1);
    } else {
      merged[at] = mergeObject(merged[at] as Fields, item as Fields, type);
    }
  }
  return merged;
}

function requireMergeKey(mergeKey: string | undefined, ...lists: (readonly unknown[])[]): void {
  if (mergeKey === undefined) return;
  for (const list of lists) {
    for (const item of list) {
      if (isObject(item) && Object.hasOwn(item, mergeKey)) continue;
      throw new Error(`map: ${goText(item)} does not contain declared merge key: ${mergeKey}`);
    }
  }
}

/** New content as the object takes it: without nulls, directives and elements that are to be deleted. */
function withoutDirectives(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.filter((item) => !(isObject(item) && Object.hasOwn(item, patchDirective))).map(withoutDirectives);
  }
  if (!isObject(value)) return value;
  for (const key of Object.keys(value)) {
    const isDirective =
      key === patchDirective || key === retainKeysDirective || key.startsWith(deletePrefix) || key.startsWith(orderPrefix);
    if (value[key] === null || isDirective) delete value[key];
    else setOwn(value, key, withoutDirectives(value[key]));
  }
  return value;
}

function badPatchType(directive: unknown, patch: Fields): Error {
  return new Error(`unknown patch type: ${String(directive)} in map: ${goText(patch)}`);
}

function unprocessable(message: string): Error {
  const refused = genericServerResponse(422, "", { group: "", resource: "" }, "", message, 0, false);
  refused.cause = new Error(message);
  return refused;
}

export function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A value as Go's %v prints it: `map[image:nginx ports:[80]]`. */
function goText(value: unknown): string {
  if (value === null || value === undefined) return "<nil>";
  if (Array.isArray(value)) return `[${value.map(goText).join(" ")}]`;
  if (!isObject(value)) return String(value);
  const fields = Object.keys(value).sort();
  return `map[${fields.map((key) => `${key}:${goText(value[key])}`).join(" ")}]`;
}
