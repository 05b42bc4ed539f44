/** Ordering of merged lists, by merge key for objects and by value for scalars. Source: strategicpatch/patch.go */

/** What identifies an element: its merge key's value, or the scalar itself. */
export type Identify = (element: unknown) => string;

export function identifyBy(mergeKey: string | undefined): Identify {
  return (element) => {
    const value = mergeKey === undefined ? element : (element as Record<string, unknown>)[mergeKey];
    return `${typeof value}:${String(value)}`;
  };
}

/** Splits by whether the element's identity is in a list. */
export function partition(
  elements: readonly unknown[],
  among: readonly unknown[],
  identify: Identify,
): [present: unknown[], rest: unknown[]] {
  const known = new Set(among.map(identify));
  const present: unknown[] = [];
  const rest: unknown[] = [];
  for (const element of elements) (known.has(identify(element)) ? present : rest).push(element);
  return [present, rest];
}

/**
 * Puts what the patch names into the patch's order and keeps what only the server has where the server had it, relative
 * to its neighbours.
 */
export function mergeOrder(
  fromPatch: readonly unknown[],
  serverOnly: readonly unknown[],
  patchOrder: readonly unknown[],
  serverOrder: readonly unknown[],
  identify: Identify,
): unknown[] {
  const right = inOrder(fromPatch, patchOrder, identify);
  const left = inOrder(serverOnly, serverOrder, identify);
  const position = positions(serverOrder, identify);
  const merged: unknown[] = [];
  let i = 0;
  let j = 0;
  while (i < left.length && j < right.length) {
    const leftAt = position.get(identify(left[i]));
    const rightAt = position.get(identify(right[j]));
    if (leftAt !== undefined && rightAt !== undefined && leftAt < rightAt) merged.push(left[i++]);
    else merged.push(right[j++]);
  }
  while (j < right.length) merged.push(right[j++]);
  while (i < left.length) merged.push(left[i++]);
  return merged;
}

/** Sorts elements as another list has them; what that list lacks stays in front. */
export function inOrder(elements: readonly unknown[], order: readonly unknown[], identify: Identify): unknown[] {
  const position = positions(order, identify);
  return elements
    .map((element) => ({ element, at: position.get(identify(element)) ?? -1 }))
    .sort((a, b) => a.at - b.at)
    .map(({ element }) => element);
}

function positions(order: readonly unknown[], identify: Identify): Map<string, number> {
  const found = new Map<string, number>();
  for (const [at, element] of order.entries()) {
    const id = identify(element);
    if (!found.has(id)) found.set(id, at);
  }
  return found;
}
