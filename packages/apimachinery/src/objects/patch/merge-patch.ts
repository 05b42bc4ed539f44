import { setOwn } from "../codec/json-parse.ts";
import { deepClone } from "../meta/deep-equal.ts";
import { isJsonObject } from "../meta/json-value.ts";

/**
 * Applies a JSON merge patch (RFC 7386): null removes a field, objects are merged, all other values replace.
 * @returns a new document that shares nothing with the arguments
 */
export function applyMergePatch(document: unknown, patch: unknown): unknown {
  return mergePatchInto(deepClone(document), deepClone(patch));
}

/** As `applyMergePatch`, but takes ownership of its arguments and may mutate them. */
export function mergePatchInto(target: unknown, patch: unknown): unknown {
  if (!isJsonObject(patch)) return patch;
  const result: Record<string, unknown> = isJsonObject(target) ? target : {};
  for (const key of Object.keys(patch)) {
    const value = patch[key];
    if (value === null) delete result[key];
    else setOwn(result, key, mergePatchInto(Object.hasOwn(result, key) ? result[key] : undefined, value));
  }
  return result;
}

/** Creates the smallest merge patch from `original` to `modified`; undefined when they are equal. */
export function createMergePatch(original: unknown, modified: unknown): unknown {
  if (!isJsonObject(original) || !isJsonObject(modified)) return sameJson(original, modified) ? undefined : modified;
  const patch: Record<string, unknown> = {};
  let changed = false;
  for (const key of Object.keys(modified)) {
    if (modified[key] === undefined) continue;
    const difference = createMergePatch(Object.hasOwn(original, key) ? original[key] : undefined, modified[key]);
    if (difference === undefined) continue;
    setOwn(patch, key, difference);
    changed = true;
  }
  for (const key of Object.keys(original)) {
    if (original[key] === undefined || (Object.hasOwn(modified, key) && modified[key] !== undefined)) continue;
    setOwn(patch, key, null);
    changed = true;
  }
  return changed ? patch : undefined;
}

function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (!Array.isArray(a) || !Array.isArray(b)) return isJsonObject(a) && isJsonObject(b) && createMergePatch(a, b) === undefined;
  return a.length === b.length && a.every((item, i) => sameJson(item, b[i]));
}
