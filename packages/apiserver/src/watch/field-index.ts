import type { FieldSelector } from "@coxswain/apimachinery/selectors/field-selector";
import type { Entry } from "../storage/storage.ts";

/**
 * The keys of the present state by the values of some selectable fields, so that a list of one node's pods looks at
 * those alone and not at all pods of the cluster.
 */
export interface FieldIndex {
  /** @param previous, current what the key held and holds; undefined: nothing. */
  change(previous: Entry | undefined, current: Entry | undefined): void;
  reset(entries: readonly Entry[]): void;
  /** Keys of all that the selector can match, and perhaps more; undefined when no indexed field narrows it. */
  candidates(selector: FieldSelector | undefined): Candidates | undefined;
}

export interface Candidates {
  /** The field whose values found them. */
  readonly field: string;
  readonly keys: ReadonlySet<string>;
}

const none: ReadonlySet<string> = new Set();

/** @param fields selectable fields to index: `spec.nodeName`. */
export function newFieldIndex(fields: readonly string[]): FieldIndex {
  const byField = new Map(fields.map((field) => [field, new Map<string, Set<string>>()]));

  function change(previous: Entry | undefined, current: Entry | undefined): void {
    for (const [field, keys] of byField) {
      const before = previous?.fields[field];
      const after = current?.fields[field];
      if (before === after && previous !== undefined && current !== undefined) continue;
      if (previous !== undefined && before !== undefined) remove(keys, before, previous.key);
      if (current !== undefined && after !== undefined) add(keys, after, current.key);
    }
  }

  return {
    change,
    reset(entries) {
      for (const keys of byField.values()) keys.clear();
      for (const entry of entries) change(undefined, entry);
    },
    candidates(selector) {
      let fewest: Candidates | undefined;
      for (const [field, keys] of byField) {
        const value = selector?.requiresExact(field);
        if (value === undefined || value === "") continue; // a field that an object lacks counts as ""
        const found = keys.get(value) ?? none;
        if (fewest === undefined || found.size < fewest.keys.size) fewest = { field, keys: found };
      }
      return fewest;
    },
  };
}

function add(keys: Map<string, Set<string>>, value: string, key: string): void {
  const there = keys.get(value);
  if (there === undefined) keys.set(value, new Set([key]));
  else there.add(key);
}

function remove(keys: Map<string, Set<string>>, value: string, key: string): void {
  const there = keys.get(value);
  if (there?.delete(key) && there.size === 0) keys.delete(value);
}
