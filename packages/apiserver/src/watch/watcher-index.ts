import { splitKey } from "@coxswain/apimachinery/meta/object-key";
import type { WatchRequest } from "../storage/storage.ts";
import type { Change } from "./change.ts";
import { type CacheWatcher, groupName, WatcherGroup } from "./watcher-group.ts";

/**
 * Dispatches a change only to the watchers that may match it. Watchers with the same selector share one WatcherGroup. Each
 * group is indexed by its narrowest criterion: one object, one value of an indexed field, one namespace, or everything. An
 * event of a pod reaches the kubelet of its node without visiting the watchers of 5,000 other nodes.
 */
export interface WatcherIndex {
  /** Returns the group for the selector of `request`; a new one is not registered before `add`. */
  groupOf(request: WatchRequest): WatcherGroup;
  add(watcher: CacheWatcher): void;
  remove(watcher: CacheWatcher): void;
  dispatch(change: Change): void;
  all(): CacheWatcher[];
}

/** Groups by index value. The arrays are replaced, never mutated, because `dispatch` may be iterating one. */
type Places = Map<string, readonly WatcherGroup[]>;

/** @param indexes selectable fields that watchers are indexed by, e.g. `spec.nodeName` */
export function newWatcherIndex(indexes: readonly string[]): WatcherIndex {
  /** Groups with at least one watcher, by name. */
  const groups = new Map<string, WatcherGroup>();
  const everywhere: Places = new Map();
  const byNamespace: Places = new Map();
  const byKey: Places = new Map();
  const byField = new Map(indexes.map((field): [string, Places] => [field, new Map()]));

  function placeOf({ prefix, fields }: WatcherGroup): [Places, string] {
    if (prefix !== "" && !prefix.endsWith("/")) return [byKey, prefix];
    for (const [field, places] of byField) {
      const value = fields?.requiresExact(field);
      if (value !== undefined) return [places, value];
    }
    return prefix === "" ? [everywhere, ""] : [byNamespace, prefix.slice(0, -1)];
  }

  function enter(group: WatcherGroup): void {
    const [places, value] = placeOf(group);
    groups.set(group.name, group);
    places.set(value, [...(places.get(value) ?? []), group]);
  }

  function leave(group: WatcherGroup): void {
    const [places, value] = placeOf(group);
    groups.delete(group.name);
    const others = (places.get(value) ?? []).filter((other) => other !== group);
    if (others.length === 0) places.delete(value);
    else places.set(value, others);
  }

  function visit(places: Places, value: string, change: Change): void {
    if (places.size === 0) return;
    for (const group of places.get(value) ?? []) group.deliver(change);
  }

  return {
    groupOf(request) {
      const name = groupName(request);
      return groups.get(name) ?? new WatcherGroup(name, request);
    },
    add(watcher) {
      const { group } = watcher;
      if (group.watchers.size === 0) enter(group);
      group.watchers.add(watcher);
    },
    remove(watcher) {
      const { group } = watcher;
      if (group.watchers.delete(watcher) && group.watchers.size === 0) leave(group);
    },
    dispatch(change) {
      if (groups.size === 0) return;
      visit(everywhere, "", change);
      visit(byKey, change.key, change);
      if (byNamespace.size > 0) visit(byNamespace, splitKey(change.key).namespace, change);
      for (const [field, places] of byField) {
        const before = change.previous?.fields[field];
        const after = change.current?.fields[field];
        if (before !== undefined) visit(places, before, change);
        if (after !== undefined && after !== before) visit(places, after, change);
      }
    },
    all: () => [...groups.values()].flatMap(({ watchers }) => [...watchers]),
  };
}
