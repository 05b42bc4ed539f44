import { splitKey } from "@coxswain/apimachinery/meta/object-key";
import type { WatchRequest } from "../storage/storage.ts";
import type { CacheWatcher } from "./audience.ts";
import { Audience, audienceName } from "./audience.ts";
import type { Change } from "./change.ts";

/**
 * Dispatches a change only to the watchers that may match it. Watchers with the same selector share one Audience. Each
 * audience is indexed by its narrowest criterion: one object, one value of an indexed field, one namespace, or everything. An
 * event of a pod reaches the kubelet of its node without visiting the watchers of 5,000 other nodes.
 */
export interface Broadcaster {
  /** Returns the audience for the selector of `request`; a new one is not registered before `add`. */
  audienceOf(request: WatchRequest): Audience;
  add(watcher: CacheWatcher): void;
  remove(watcher: CacheWatcher): void;
  dispatch(change: Change): void;
  all(): CacheWatcher[];
}

/** Audiences by index value. The arrays are replaced, never mutated, because `dispatch` may be iterating one. */
type Places = Map<string, readonly Audience[]>;

/** @param indexes selectable fields that watchers are indexed by, e.g. `spec.nodeName` */
export function newBroadcaster(indexes: readonly string[]): Broadcaster {
  /** Audiences with at least one watcher, by name. */
  const audiences = new Map<string, Audience>();
  const everywhere: Places = new Map();
  const byNamespace: Places = new Map();
  const byKey: Places = new Map();
  const byField = new Map(indexes.map((field): [string, Places] => [field, new Map()]));

  function placeOf({ prefix, fields }: Audience): [Places, string] {
    if (prefix !== "" && !prefix.endsWith("/")) return [byKey, prefix];
    for (const [field, places] of byField) {
      const value = fields?.requiresExact(field);
      if (value !== undefined) return [places, value];
    }
    return prefix === "" ? [everywhere, ""] : [byNamespace, prefix.slice(0, -1)];
  }

  function enter(audience: Audience): void {
    const [places, value] = placeOf(audience);
    audiences.set(audience.name, audience);
    places.set(value, [...(places.get(value) ?? []), audience]);
  }

  function leave(audience: Audience): void {
    const [places, value] = placeOf(audience);
    audiences.delete(audience.name);
    const others = (places.get(value) ?? []).filter((other) => other !== audience);
    if (others.length === 0) places.delete(value);
    else places.set(value, others);
  }

  function visit(places: Places, value: string, change: Change): void {
    if (places.size === 0) return;
    for (const audience of places.get(value) ?? []) audience.tell(change);
  }

  return {
    audienceOf(request) {
      const name = audienceName(request);
      return audiences.get(name) ?? new Audience(name, request);
    },
    add(watcher) {
      const { audience } = watcher;
      if (audience.watchers.size === 0) enter(audience);
      audience.watchers.add(watcher);
    },
    remove(watcher) {
      const { audience } = watcher;
      if (audience.watchers.delete(watcher) && audience.watchers.size === 0) leave(audience);
    },
    dispatch(change) {
      if (audiences.size === 0) return;
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
    all: () => [...audiences.values()].flatMap(({ watchers }) => [...watchers]),
  };
}
