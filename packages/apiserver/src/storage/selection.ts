import { atRevision } from "./entry.ts";
import type { Entry, Selection, WatchEvent } from "./storage.ts";

/** Does it leave anything out? */
export function isSelective({ labels, fields }: Selection): boolean {
  return labels?.empty === false || fields?.empty === false;
}

export function matches(selection: Selection, entry: Entry): boolean {
  return (
    (selection.labels === undefined || selection.labels.matches(entry.labels)) &&
    (selection.fields === undefined || selection.fields.matches(entry.fields))
  );
}

/**
 * What a reader with this selection sees of a change: an object that begins to match is ADDED, one that stops is
 * DELETED with its last matching state, both with the change's revision; undefined when it sees nothing.
 */
export function transition(
  selection: Selection,
  previous: Entry | undefined,
  current: Entry | undefined,
  revision: number,
): WatchEvent | undefined {
  const before = previous !== undefined && matches(selection, previous);
  const after = current !== undefined && matches(selection, current);
  if (after) return { type: before ? "MODIFIED" : "ADDED", entry: current };
  return before ? { type: "DELETED", entry: atRevision(previous, revision) } : undefined;
}
