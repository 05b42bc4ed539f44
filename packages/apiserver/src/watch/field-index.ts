import type { FieldSelector } from "@coxswain/apimachinery/selectors/field-selector";
import type { Entry } from "../storage/storage.ts";

/**
 * Keys of the current objects by the values of selected fields, so that listing the pods of one node does not scan all pods
 * of the cluster.
 */
export interface FieldIndex {
  /** @param previous, current the state of the key before and after; undefined: absent */
  change(previous: Entry | undefined, current: Entry | undefined): void;
  reset(entries: readonly Entry[]): void;
  /** Keys of all objects that the selector can match, possibly more; undefined when no indexed field narrows it. */
  candidates(selector: FieldSelector | undefined): Candidates | undefined;
}

export interface Candidates {
  /** The indexed field that selected the keys. */
  readonly field: string;
  readonly keys: ReadonlySet<string>;
}

const none: ReadonlySet<string> = new Set();

/** @param fields selectable fields to index, e.g. `spec.nodeName` */
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
        if (value === undefined || value === "") continue; // a missing field is selectable as "", but is not indexed
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
