import type { Entry, Selection, WatchEvent } from "./storage.ts";

/** Whether the selection can exclude objects. */
export function isSelective({ labels, fields }: Selection): boolean {
  return labels?.empty === false || fields?.empty === false;
}

/** Whether the entry's labels and fields match the selection. */
export function matches(selection: Selection, entry: Entry): boolean {
  return (
    (selection.labels === undefined || selection.labels.matches(entry.labels)) &&
    (selection.fields === undefined || selection.fields.matches(entry.fields))
  );
}

/**
 * The event that a watcher with this selection sees of a change: an object that begins to match is ADDED, one that stops matching
 * is DELETED with its last matching state, both at the change's revision. undefined when it matches neither before nor after.
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
  return before ? { type: "DELETED", entry: previous.atRevision(revision) } : undefined;
}
