/** Longer lists are looked up in a set. */
const shortList = 8;
const sets = new WeakMap<readonly string[], ReadonlySet<string>>();

/**
 * Whether a selector's list has a value. Users write lists of tens of thousands, and thousands of objects are held against
 * them: such a list becomes a set once.
 * @param values nobody changes them any more
 */
export function listHas(values: readonly string[], value: string): boolean {
  if (values.length <= shortList) return values.includes(value);
  const set = sets.get(values) ?? new Set(values);
  sets.set(values, set);
  return set.has(value);
}
