/** Ordering of merged lists, by merge key for objects and by value for scalars. Source: strategicpatch/patch.go */

/** What identifies an element: its merge key's value, or the scalar itself. */
export type Identify = (element: unknown) => unknown;

export function identifyBy(mergeKey: string | undefined): Identify {
  return (element) => {
    const value = mergeKey === undefined ? element : (element as Record<string, unknown>)[mergeKey];
    // Lists and objects, which are no merge keys in any schema, are as good as what they print as.
    return typeof value === "object" && value !== null ? `\u0000${String(value)}` : value;
  };
}

/**
 * Puts what the patch names into the patch's order and keeps what only the server has where the server had it, relative
 * to its neighbours.
 */
export function mergeOrder(
  elements: readonly unknown[],
  patchOrder: readonly unknown[],
  serverOrder: readonly unknown[],
  identify: Identify,
): unknown[] {
  const inPatch = positions(patchOrder, identify);
  const onServer = positions(serverOrder, identify);
  const fromPatch: unknown[] = [];
  const serverOnly: unknown[] = [];
  for (const element of elements) (inPatch.has(identify(element)) ? fromPatch : serverOnly).push(element);
  const right = sortedBy(fromPatch, inPatch, identify);
  const left = sortedBy(serverOnly, onServer, identify);
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

/** Sorts elements as another list has them; what that list lacks stays in front. */
export function inOrder(elements: readonly unknown[], order: readonly unknown[], identify: Identify): readonly unknown[] {
  return sortedBy(elements, positions(order, identify), identify);
}

function sortedBy(elements: readonly unknown[], position: ReadonlyMap<unknown, number>, identify: Identify): readonly unknown[] {
  const places = elements.map((element) => position.get(identify(element)) ?? -1);
  if (places.every((at, i) => i === 0 || at >= (places[i - 1] as number))) return elements;
  return elements
    .map((element, i) => ({ element, at: places[i] as number }))
    .sort((a, b) => a.at - b.at)
    .map(({ element }) => element);
}

/** Where each stands first. */
export function positions(order: readonly unknown[], identify: Identify): Map<unknown, number> {
  const found = new Map<unknown, number>();
  for (let at = 0; at < order.length; at++) {
    const id = identify(order[at]);
    if (!found.has(id)) found.set(id, at);
  }
  return found;
}
