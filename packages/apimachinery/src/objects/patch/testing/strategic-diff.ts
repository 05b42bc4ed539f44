import { setOwn } from "../../codec/json-parse.ts";
import { deepClone, deepEqual } from "../../meta/deep-equal.ts";
import type { FieldType, TypeDescriptor } from "../../schema/descriptor.ts";
import { identifyBy, positions, sortedBy } from "../element-order.ts";
import { patchField, structOf } from "../patch-schema.ts";
import { deleteDirective, isObject, orderDirective, patchDirective, retainKeysDirective } from "../strategic-directives.ts";

type Fields = Record<string, unknown>;

const deletePrefix = `${deleteDirective}/`;
const orderPrefix = `${orderDirective}/`;

/**
 * Creates the strategic merge patch from `original` to `modified`; `{}` when they are equal.
 * Source: apimachinery pkg/util/strategicpatch/patch.go, CreateTwoWayMergePatch
 */
export function createTwoWayMergePatch(
  original: unknown,
  modified: unknown,
  descriptor: TypeDescriptor,
): Record<string, unknown> {
  return deepClone(diffObjects(original as Fields, modified as Fields, structOf(descriptor), false));
}

function diffObjects(original: Fields, modified: Fields, type: FieldType | undefined, retainKeys: boolean): Fields {
  const patch: Fields = {};
  const modifiedKeys = Object.keys(modified).filter((key) => modified[key] !== undefined);
  for (const key of modifiedKeys) {
    const before = Object.hasOwn(original, key) ? original[key] : undefined;
    diffField(patch, key, before, modified[key], type);
  }
  for (const key of Object.keys(original)) {
    if (original[key] !== undefined && (!Object.hasOwn(modified, key) || modified[key] === undefined)) setOwn(patch, key, null);
  }
  if (retainKeys && modifiedKeys.length > 0 && Object.keys(patch).length > 0) patch[retainKeysDirective] = modifiedKeys.sort();
  return patch;
}

function diffField(patch: Fields, key: string, before: unknown, after: unknown, type: FieldType | undefined): void {
  if (before === undefined) {
    setOwn(patch, key, after);
    return;
  }
  const field = patchField(type, key);
  if (isObject(before) && isObject(after) && field.strategy !== "replace") {
    const inner = diffObjects(before, after, field.inner, field.retainKeys);
    if (Object.keys(inner).length > 0) setOwn(patch, key, inner);
  } else if (Array.isArray(before) && Array.isArray(after) && field.strategy === "merge") {
    diffLists(patch, key, before, after, field.mergeKey, field.inner);
  } else if (!deepEqual(before, after)) {
    setOwn(patch, key, after);
  }
}

function diffLists(
  patch: Fields,
  key: string,
  before: readonly unknown[],
  after: readonly unknown[],
  mergeKey: string | undefined,
  type: FieldType | undefined,
): void {
  if (deepEqual(before, after)) return;
  if (before.length === 0) {
    setOwn(patch, key, after);
    return;
  }
  const identify = identifyBy(mergeKey);
  if (mergeKey === undefined) {
    const had = new Set(before);
    const has = new Set(after);
    const added = after.filter((item) => !had.has(item));
    const removed = before.filter((item) => !has.has(item));
    if (added.length > 0) setOwn(patch, key, added);
    if (removed.length > 0) setOwn(patch, deletePrefix + key, removed);
    if (after.length > 0) setOwn(patch, orderPrefix + key, [...after]);
    return;
  }
  const earlier = new Map(before.map((item) => [identify(item), item as Fields]));
  const kept = new Set(after.map(identify));
  const changed: unknown[] = [];
  for (const item of after) {
    const was = earlier.get(identify(item));
    if (was === undefined) {
      changed.push(item);
      continue;
    }
    const inner = diffObjects(was, item as Fields, type, false);
    if (Object.keys(inner).length > 0) changed.push({ ...inner, [mergeKey]: was[mergeKey] });
  }
  const deletions = before
    .filter((item) => !kept.has(identify(item)))
    .map((item) => ({ [patchDirective]: "delete", [mergeKey]: (item as Fields)[mergeKey] }));
  const list = [...sortedBy(changed, positions(after, identify), identify), ...deletions];
  if (list.length > 0) setOwn(patch, key, list);
  // The lists differ in content or order; the order directive is needed in both cases.
  setOwn(
    patch,
    orderPrefix + key,
    after.map((item) => ({ [mergeKey]: (item as Fields)[mergeKey] })),
  );
}
