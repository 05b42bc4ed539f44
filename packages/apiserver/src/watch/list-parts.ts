import type { Entry } from "../storage/storage.ts";

/**
 * Parts of a list (a selection, one page), cached for the lifetime of the list array: requests for the same part get the same
 * array, and with it the encoded bytes cached against it. In pages of 500, listing 5,000 pods costs a third of selecting and
 * encoding each page for each request.
 */
const parts = new WeakMap<readonly Entry[], Map<string, Entry[]>>();

/** Per list; the oldest parts are evicted. */
const mostParts = 64;
/** Longer names (arbitrary client selectors) are not cached. */
const longestName = 1000;

/** @param name identifies the part; equal names must mean equal parts. @returns a read-only array */
export function partOf(list: readonly Entry[], name: string, pick: () => Entry[]): Entry[] {
  if (name.length > longestName) return pick();
  let known = parts.get(list);
  if (known === undefined) {
    known = new Map();
    parts.set(list, known);
  }
  let part = known.get(name);
  if (part === undefined) {
    part = pick();
    if (known.size >= mostParts) known.delete(known.keys().next().value!);
    known.set(name, part);
  }
  return part;
}
