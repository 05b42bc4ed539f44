import { readFileSync } from "node:fs";

/** A fault that somebody has looked at: it changes nothing that a test could notice. */
export interface Equivalent {
  readonly id: string;
  readonly kind: string;
  readonly file: string;
  /** Why it is none. */
  readonly why: string;
}

/** @throws Error for an entry without a reason, and for one that stands there twice */
export function readEquivalents(path: string): ReadonlyMap<string, Equivalent> {
  const entries = JSON.parse(readFileSync(path, "utf8")) as Equivalent[];
  const byId = new Map<string, Equivalent>();
  for (const entry of entries) {
    if (!entry.why?.trim()) throw new Error(`${path}: ${entry.id} has no reason ("why")`);
    if (byId.has(entry.id)) throw new Error(`${path}: ${entry.id} stands there twice`);
    byId.set(entry.id, entry);
  }
  return byId;
}

/** Entries of files below the folders whose fault does not exist any more: the code has changed since. */
export function outdated(
  known: ReadonlyMap<string, Equivalent>,
  found: ReadonlySet<string>,
  files: ReadonlySet<string>,
): Equivalent[] {
  return [...known.values()].filter(({ id, file }) => files.has(file) && !found.has(id));
}
