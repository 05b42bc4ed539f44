import { readFileSync } from "node:fs";

/** A mutant known to be equivalent: no test can detect it. */
interface Equivalent {
  readonly id: string;
  readonly kind: string;
  readonly file: string;
  /** Why it is equivalent. */
  readonly why: string;
}

/** @throws Error for an entry without reason, and for duplicates */
export function readEquivalents(path: string): ReadonlyMap<string, Equivalent> {
  const entries = JSON.parse(readFileSync(path, "utf8")) as Equivalent[]; // cast: a hand-written file of this repository
  const byId = new Map<string, Equivalent>();
  for (const entry of entries) {
    if (!entry.why?.trim()) throw new Error(`${path}: ${entry.id} has no reason ("why")`);
    if (byId.has(entry.id)) throw new Error(`${path}: ${entry.id} is listed twice`);
    byId.set(entry.id, entry);
  }
  return byId;
}

/** Entries whose mutant no longer exists in the given files, because the code has changed. */
export function outdated(
  known: ReadonlyMap<string, Equivalent>,
  found: ReadonlySet<string>,
  files: ReadonlySet<string>,
): Equivalent[] {
  return [...known.values()].filter(({ id, file }) => files.has(file) && !found.has(id));
}
