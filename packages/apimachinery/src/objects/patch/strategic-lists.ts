/** Strategic merge of lists. Source: apimachinery pkg/util/strategicpatch/patch.go, mergeSlice */
import { Pace, type Steps } from "../../process/event-loop/steps.ts";
import { genericServerResponse } from "../errors/status-error.ts";
import { identifyBy, mergeOrder, positions } from "./element-order.ts";
import { goKind, goText, goTypeName } from "./go-text.ts";
import type { mergeField } from "./patch-schema.ts";
import { badPatchType, type Fields, isObject, patchDirective } from "./strategic-directives.ts";

/** Elements of lists that are merged between two yields. */
const elementsPerStep = 2048;

type ListField = ReturnType<typeof mergeField>;
/** Merges a patch into one element. */
type Merge = (current: Fields, patch: Fields, type: ListField["inner"]) => Steps<Fields>;

/**
 * @param isDeletion the patch lists scalars to remove
 * @returns the merged list; the patch itself when the field's strategy is not `merge`
 */
export function* mergeList(
  current: unknown[],
  patch: unknown[],
  field: ListField,
  merge: Merge,
  isDeletion = false,
): Steps<unknown[]> {
  if (field.strategy !== "merge") return patch;
  if (current.length === 0 && patch.length === 0) return current;
  const { mergeKey, inner } = field;
  if (elementKind(current, patch) !== "map") {
    if (isDeletion) {
      const gone = new Set(patch);
      return current.filter((item) => !gone.has(item));
    }
    return yield* ordered([...new Set([...current, ...patch])], patch, current, mergeKey);
  }
  if (mergeKey === undefined) throw new Error(`cannot merge lists without merge key for ${goKindOf(inner)}`);
  // Cast: `elementKind` has found objects alone.
  const { kept, additions, replaces } = applyElementDirectives(current as Fields[], patch as Fields[], mergeKey);
  if (replaces) return yield* ordered(additions, [], additions, mergeKey);
  const merged = yield* mergeElements(kept, additions, mergeKey, (item, change) => merge(item, change, inner));
  return yield* ordered(merged, additions, kept, mergeKey);
}

/** Applies `$setElementOrder`: listed elements get its order, server-only ones keep their relative position. */
export function* putInOrder(
  merged: unknown[],
  order: readonly unknown[],
  current: readonly unknown[],
  patch: readonly unknown[],
  mergeKey: string | undefined,
): Steps<unknown[]> {
  if (mergeKey === undefined) for (const item of [...order, ...merged]) hashable(item);
  else checkOrderElements(order, merged, mergeKey);
  elementKind(current, patch);
  return yield* ordered(merged, order, current, mergeKey);
}

/** @throws Error unless the elements of the patch occur in the order list, in the same order */
export function checkOrder(list: readonly unknown[], order: readonly unknown[], mergeKey: string | undefined): void {
  if (order.length === 0 || list.length === 0) return;
  const added = mergeKey === undefined ? list : list.filter((item) => expectMap(item)[patchDirective] !== "delete");
  let next = 0;
  let at = 0;
  while (next < added.length && at < order.length) {
    const item = added[next];
    if (isObject(item) && Object.hasOwn(item, patchDirective)) {
      next++;
      continue;
    }
    if (isSame(item, order[at], mergeKey)) next++;
    at++;
  }
  if (next < added.length && at >= order.length) {
    throw new Error(`The order in patch list:\n${goText(list)}\n doesn't match $setElementOrder list:\n${goText(order)}\n`);
  }
}

function isSame(left: unknown, right: unknown, mergeKey: string | undefined): boolean {
  if (mergeKey === undefined) return left === right;
  const [a, b] = [expectMap(left), expectMap(right)];
  for (const item of [a, b]) requireMergeKey(mergeKey, item);
  return a[mergeKey] === b[mergeKey];
}

function* ordered(
  merged: readonly unknown[],
  order: readonly unknown[],
  current: readonly unknown[],
  mergeKey: string | undefined,
): Steps<unknown[]> {
  const identify = identifyBy(mergeKey);
  const isLong = merged.length + order.length > elementsPerStep;
  if (isLong) yield;
  if (mergeKey !== undefined) {
    requireMergeKeys(mergeKey, merged);
    checkOrderElements(order, merged, mergeKey);
    requireMergeKeys(mergeKey, order);
    requireMergeKeys(mergeKey, current);
    if (isLong) yield;
  }
  return yield* mergeOrder(merged, order, current, identify);
}

/** Upstream searches each element from the start of the order list, and fails at the first item that is not an object. */
function checkOrderElements(order: readonly unknown[], merged: readonly unknown[], mergeKey: string): void {
  const at = order.findIndex((item) => !isObject(item));
  if (at < 0) return;
  const identify = identifyBy(mergeKey);
  const before = new Set(order.slice(0, at).map(identify));
  if (merged.some((item) => !before.has(identify(item)))) throw new Error(`value for key ${at} is not a map`);
}

/** All elements of both lists must be of one kind other than list. Null is reported with the text of Go's panic. */
function elementKind(...lists: (readonly unknown[])[]): string {
  let kind: string | undefined;
  for (const item of lists.flat()) {
    const own = goKind(item);
    if (kind !== undefined && own !== kind) throw new Error(`list element types are not identical: ${goText(lists)}`);
    if (own === "nil") throw new Error("runtime error: invalid memory address or nil pointer dereference");
    if (own === "slice") throw listOfLists();
    kind = own;
  }
  if (kind === undefined) throw new Error("no elements in any of the given slices");
  return kind;
}

/** Elements with `$patch`: `delete` removes the element with that key, `replace` keeps only the patch's other elements. */
function applyElementDirectives(
  current: readonly Fields[],
  patch: readonly Fields[],
  mergeKey: string,
): { kept: readonly Fields[]; additions: Fields[]; replaces: boolean } {
  const additions: Fields[] = [];
  const deleted = new Set<unknown>();
  const identify = identifyBy(mergeKey);
  let replaces = false;
  for (const item of patch) {
    if (!Object.hasOwn(item, patchDirective)) {
      additions.push(item);
      continue;
    }
    switch (item[patchDirective]) {
      case "delete":
        requireMergeKey(mergeKey, item);
        deleted.add(identify(item));
        break;
      case "replace":
        replaces = true;
        break;
      case "merge":
        throw new Error("merging lists cannot yet be specified in the patch");
      default:
        throw badPatchType(item[patchDirective], item);
    }
  }
  const kept = deleted.size === 0 ? current : current.filter((item) => !deleted.has(identify(item)));
  return { kept, additions, replaces };
}

function* mergeElements(
  current: readonly Fields[],
  additions: readonly Fields[],
  mergeKey: string,
  merge: (current: Fields, patch: Fields) => Steps<Fields>,
): Steps<unknown[]> {
  const identify = identifyBy(mergeKey);
  const merged = [...current];
  const pace = new Pace(elementsPerStep);
  if (merged.length > elementsPerStep) yield;
  const position = positions(merged, identify);
  for (const item of additions) {
    if (pace.isDue()) yield;
    requireMergeKey(mergeKey, item);
    const id = identify(item);
    const at = position.get(id);
    if (at === undefined) position.set(id, merged.push(item) - 1);
    else merged[at] = yield* merge(merged[at]!, item);
  }
  return merged;
}

function requireMergeKey(mergeKey: string, item: Fields): void {
  if (!Object.hasOwn(item, mergeKey)) {
    throw new Error(`map: ${goText(item)} does not contain declared merge key: ${mergeKey}`);
  }
}

function requireMergeKeys(mergeKey: string, items: readonly unknown[]): void {
  for (const item of items) requireMergeKey(mergeKey, expectMap(item));
}

/** @throws Error for anything else (500, as upstream) */
export function expectList(value: unknown): unknown[] {
  if (Array.isArray(value)) return value;
  throw new Error(`expected a []interface {}, but received a ${goTypeName(value)}`);
}

function expectMap(value: unknown): Fields {
  if (isObject(value)) return value;
  throw new Error(`expected a map[string]interface {}, but received a ${goTypeName(value)}`);
}

/** Returns a scalar unchanged. @throws Error with the text of Go's panic for a value that is not hashable in Go */
export function hashable(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  throw new Error(`runtime error: hash of unhashable type ${goTypeName(value)}`);
}

function listOfLists(): Error {
  const message = "lists of lists are not supported";
  const refused = genericServerResponse(422, "", { group: "", resource: "" }, "", message, 0, false);
  refused.cause = new Error(message);
  return refused;
}

function goKindOf(type: ListField["inner"]): string {
  if (type.kind === "list") return "slice";
  return type.kind;
}
