/** Longer lists are converted to a set. */
const shortList = 8;
/** A pure cache: the lists do not change. */
const sets = new WeakMap<readonly string[], ReadonlySet<string>>();

/**
 * True when a selector's list contains a value. Lists may have tens of thousands of values and be matched against thousands
 * of objects; the set for such a list is created once.
 * @param values must not be mutated afterwards: the set is cached by identity
 */
export function listHas(values: readonly string[], value: string): boolean {
  if (values.length <= shortList) return values.includes(value);
  return sets.getOrInsertComputed(values, (list) => new Set(list)).has(value);
}
