import type { Entry } from "../storage/storage.ts";

/**
 * Parts of a list (what a selector takes, one page) that are kept as long as the list itself: who asks for the same part
 * of the same list gets the same array, and with it the bytes that were made from it. In pages of 500, 5,000 pods cost
 * a third of what they do when each page is cut and encoded anew.
 */
const parts = new WeakMap<readonly Entry[], Map<string, Entry[]>>();

/** Of one list; the oldest go. */
const mostParts = 64;
/** Longer names (selectors that somebody made up) are not worth their own memory. */
const longestName = 1000;

/** @param name says which part; the same name must always mean the same part. Read only, as the list is. */
export function picked(list: readonly Entry[], name: string, pick: () => Entry[]): Entry[] {
  if (name.length > longestName) return pick();
  let known = parts.get(list);
  if (known === undefined) {
    known = new Map();
    parts.set(list, known);
  }
  let part = known.get(name);
  if (part === undefined) {
    part = pick();
    if (known.size >= mostParts) known.delete(known.keys().next().value as string);
    known.set(name, part);
  }
  return part;
}
