/**
 * Sorts rows incrementally: the previous order is kept where it is still valid, so that few changes take linear time.
 * @param before the previous result
 * @param rows by uid
 */
export function reordered<R extends { readonly uid: string }>(
  before: readonly R[],
  rows: ReadonlyMap<string, R>,
  compare: (a: R, b: R) => number,
): R[] {
  const isKnown = new Set<string>();
  const all: R[] = [];
  for (const { uid } of before) {
    const row = rows.get(uid);
    if (row === undefined) continue;
    isKnown.add(uid);
    all.push(row);
  }
  for (const row of rows.values()) if (!isKnown.has(row.uid)) all.push(row);
  return all.sort(compare);
}
