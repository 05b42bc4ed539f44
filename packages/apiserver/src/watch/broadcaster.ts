import { splitKey } from "@coxswain/apimachinery/meta/object-key";
import type { Change } from "./change.ts";
import type { CacheWatcher } from "./watcher.ts";

/**
 * From a change to the watchers that may see it, without visiting the others: each watcher stands in one place, by the
 * narrowest thing it asks for (one object, one value of an indexed field, one namespace, everything). A pod's event
 * visits the kubelet of its node and not those of 5,000 others.
 */
export interface Broadcaster {
  add(watcher: CacheWatcher): void;
  remove(watcher: CacheWatcher): void;
  dispatch(change: Change): void;
  readonly size: number;
  all(): Iterable<CacheWatcher>;
}

/** @param indexes selectable fields by which watchers are found: `spec.nodeName`. */
export function newBroadcaster(indexes: readonly string[]): Broadcaster {
  const everything = new Set<CacheWatcher>();
  const byNamespace = new Map<string, Set<CacheWatcher>>();
  const byKey = new Map<string, Set<CacheWatcher>>();
  const byField = new Map(indexes.map((field) => [field, new Map<string, Set<CacheWatcher>>()]));
  const watchers = new Set<CacheWatcher>();

  function place(watcher: CacheWatcher): { group: Map<string, Set<CacheWatcher>>; value: string } | undefined {
    const { prefix, fields } = watcher.request;
    if (prefix !== "" && !prefix.endsWith("/")) return { group: byKey, value: prefix };
    for (const [field, group] of byField) {
      const value = fields?.requiresExact(field);
      if (value !== undefined) return { group, value };
    }
    return prefix === "" ? undefined : { group: byNamespace, value: prefix.slice(0, -1) };
  }

  function visit(set: Set<CacheWatcher> | undefined, change: Change): void {
    if (set === undefined) return;
    for (const watcher of set) watcher.see(change);
  }

  return {
    get size() {
      return watchers.size;
    },
    all: () => watchers,
    add(watcher) {
      watchers.add(watcher);
      const at = place(watcher);
      if (at === undefined) {
        everything.add(watcher);
        return;
      }
      let set = at.group.get(at.value);
      if (set === undefined) {
        set = new Set();
        at.group.set(at.value, set);
      }
      set.add(watcher);
    },
    remove(watcher) {
      if (!watchers.delete(watcher)) return;
      const at = place(watcher);
      if (at === undefined) {
        everything.delete(watcher);
        return;
      }
      const set = at.group.get(at.value);
      set?.delete(watcher);
      if (set?.size === 0) at.group.delete(at.value);
    },
    dispatch(change) {
      if (watchers.size === 0) return;
      visit(everything, change);
      if (byKey.size > 0) visit(byKey.get(change.key), change);
      if (byNamespace.size > 0) visit(byNamespace.get(splitKey(change.key).namespace), change);
      for (const [field, group] of byField) {
        if (group.size === 0) continue;
        const before = change.previous?.fields[field];
        const after = change.current?.fields[field];
        if (before !== undefined) visit(group.get(before), change);
        if (after !== undefined && after !== before) visit(group.get(after), change);
      }
    },
  };
}
