/*
 * Keys of constant tables. The compiler takes the keys of any object for `string`, because a value may have more properties than its
 * type lists; these functions are for values that have no others, such as literals.
 */

type Key<T> = keyof T & string;

/** The keys of a table, in its order. */
export function keysOf<T extends object>(table: T): Key<T>[] {
  return Object.keys(table) as Key<T>[]; // cast: see the top of the file
}

/** The keys of a table with their values, in its order. */
export function entriesOf<T extends object>(table: T): { [K in Key<T>]: [key: K, value: T[K]] }[Key<T>][] {
  return Object.entries(table) as { [K in Key<T>]: [K, T[K]] }[Key<T>][]; // cast: see the top of the file
}

/** Whether the table has the key as its own; for text from outside, such as the name in a file. */
export function isKeyOf<T extends object>(table: T, key: unknown): key is Key<T> {
  return typeof key === "string" && Object.hasOwn(table, key);
}

/** A table with the value of each key. @param keys all of them */
export function tableOf<K extends string, V>(keys: readonly K[], value: (key: K) => V): Record<K, V> {
  return Object.fromEntries(keys.map((key) => [key, value(key)])) as Record<K, V>; // cast: `fromEntries` takes keys for `string`
}

/** Whether a list of constants has the value; `Array.includes` takes only what the compiler knows to be one of them. */
export function isOneOf<T>(list: readonly T[], value: unknown): value is T {
  const values: readonly unknown[] = list;
  return values.includes(value);
}
