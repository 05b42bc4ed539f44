/** Ordering of merged lists, by merge key for objects and by value for scalars. Source: strategicpatch/patch.go */

import type { Steps } from "../../process/event-loop/steps.ts";

/** Lists of more elements are put in order in steps, one for each pass over them. */
const elementsPerStep = 2048;

/** Returns an element's identity: the value of its merge key, or the scalar itself. */
type Identify = (element: unknown) => unknown;

/** @param mergeKey undefined for lists of scalars */
export function identifyBy(mergeKey: string | undefined): Identify {
  return (element) => {
    // Cast: with a merge key callers pass objects, as `elementKind` of strategic-lists.ts has found.
    const value = mergeKey === undefined ? element : (element as Record<string, unknown>)[mergeKey];
    // No schema has lists or objects as merge keys; they are compared by their string form.
    return typeof value === "object" && value !== null ? `\u0000${String(value)}` : value;
  };
}

/**
 * Sorts elements named in the patch in the patch's order, and keeps the position of server-only elements relative to
 * their neighbours.
 */
export function* mergeOrder(
  elements: readonly unknown[],
  patchOrder: readonly unknown[],
  serverOrder: readonly unknown[],
  identify: Identify,
): Steps<unknown[]> {
  const isLong = elements.length + patchOrder.length > elementsPerStep;
  const inPatch = positions(patchOrder, identify);
  if (isLong) yield;
  const onServer = positions(serverOrder, identify);
  if (isLong) yield;
  const fromPatch: unknown[] = [];
  const serverOnly: unknown[] = [];
  for (const element of elements) (inPatch.has(identify(element)) ? fromPatch : serverOnly).push(element);
  if (isLong) yield;
  const right = sortedBy(fromPatch, inPatch, identify);
  if (isLong) yield;
  const left = sortedBy(serverOnly, onServer, identify);
  if (isLong) yield;
  const merged: unknown[] = [];
  let i = 0;
  let j = 0;
  while (i < left.length && j < right.length) {
    const leftAt = onServer.get(identify(left[i]));
    const rightAt = onServer.get(identify(right[j]));
    if (leftAt !== undefined && rightAt !== undefined && leftAt < rightAt) merged.push(left[i++]);
    else merged.push(right[j++]);
  }
  while (j < right.length) merged.push(right[j++]);
  while (i < left.length) merged.push(left[i++]);
  return merged;
}

/** Sorts elements by the positions of their identities; those without one come first. */
export function sortedBy(
  elements: readonly unknown[],
  position: ReadonlyMap<unknown, number>,
  identify: Identify,
): readonly unknown[] {
  const places = elements.map((element) => position.get(identify(element)) ?? -1);
  if (places.every((at, i) => i === 0 || at >= places[i - 1]!)) return elements;
  return elements
    .map((element, i) => ({ element, at: places[i]! }))
    .sort((a, b) => a.at - b.at)
    .map(({ element }) => element);
}

/** Identity → index of its first occurrence. */
export function positions(order: readonly unknown[], identify: Identify): Map<unknown, number> {
  const found = new Map<unknown, number>();
  for (let at = 0; at < order.length; at++) {
    const id = identify(order[at]);
    if (!found.has(id)) found.set(id, at);
  }
  return found;
}
