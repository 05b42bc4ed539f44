import type { RequestInfo } from "../request/request-info.ts";

/**
 * Counts open watches by scope: a whole resource, one namespace, one object.
 * Source: k8s.io/apiserver pkg/util/flowcontrol/watch_tracker.go
 */
export interface WatchCounts {
  /** @returns a function that removes the watch */
  add(info: RequestInfo): () => void;
  /** Number of watches that may receive an event of the request's object. */
  interestedIn(info: RequestInfo): number;
}

export function newWatchCounts(): WatchCounts {
  const counts = new Map<string, number>();
  const change = (key: string, by: number): void => {
    const count = (counts.get(key) ?? 0) + by;
    if (count === 0) counts.delete(key);
    else counts.set(key, count);
  };
  return {
    add({ group, resource, namespace, name }) {
      const key = keyOf(group, resource, namespace, name);
      change(key, 1);
      return () => change(key, -1);
    },
    interestedIn({ isResourceRequest, group, resource, namespace, name }) {
      if (!isResourceRequest || counts.size === 0) return 0;
      let sum = counts.get(keyOf(group, resource, "", "")) ?? 0;
      if (namespace !== "") sum += counts.get(keyOf(group, resource, namespace, "")) ?? 0;
      if (name !== "") sum += counts.get(keyOf(group, resource, namespace, name)) ?? 0;
      return sum;
    },
  };
}

/** None of the parts contains a slash. */
const keyOf = (...parts: string[]): string => parts.join("/");
