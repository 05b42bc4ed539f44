import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { keyOf, revisionOf, type SeenEvent, type Selection, tagOf, type Version } from "./records.ts";

/** Indexed history of one resource in etcd. */
export interface Timeline {
  /** In revision order. */
  readonly versions: readonly Version[];
  of(key: string): readonly Version[];
  /** Version of the key at the revision; undefined when the key did not exist. */
  at(key: string, revision: number): Version | undefined;
  /** The key's first change after the revision. */
  next(key: string, revision: number): Version | undefined;
  /** The state below a prefix at a revision, in key order. */
  state(prefix: string, revision: number): Version[];
  /** Events that a watcher must receive after a revision. */
  events(prefix: string, selection: Selection, after: number): ExpectedEvent[];
  /** Changes that wrote this `data.tag`, in revision order; more than one when a write was applied twice. */
  tagged(tag: string): readonly Version[];
}

export interface ExpectedEvent {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly key: string;
  readonly revision: number;
  readonly text: string;
}

/** @param versions all changes in revision order; `object` undefined: a deletion */
export function newTimeline(versions: readonly Version[]): Timeline {
  const byKey = new Map<string, Version[]>();
  const byTag = new Map<string, Version[]>();
  for (const version of versions) {
    const before = byKey.get(version.key);
    const tag = tagOf(version.object);
    if (tag !== undefined && tag !== tagOf(before?.at(-1)?.object)) byTag.set(tag, [...(byTag.get(tag) ?? []), version]);
    if (before === undefined) byKey.set(version.key, [version]);
    else before.push(version);
  }
  const keys = [...byKey.keys()].sort();
  const of = (key: string): readonly Version[] => byKey.get(key) ?? [];

  function at(key: string, revision: number): Version | undefined {
    const all = of(key);
    const last = all[firstAfter(all, revision) - 1];
    return last?.object === undefined ? undefined : last;
  }

  return {
    versions,
    of,
    at,
    next: (key, revision) => of(key)[firstAfter(of(key), revision)],
    state: (prefix, revision) =>
      keys
        .filter((key) => key.startsWith(prefix))
        .map((key) => at(key, revision))
        .filter((version) => version !== undefined),
    tagged: (tag) => byTag.get(tag) ?? [],
    events(prefix, selection, after) {
      const expected: ExpectedEvent[] = [];
      for (const { key, revision, object } of versions.slice(firstAfter(versions, after))) {
        if (!key.startsWith(prefix)) continue;
        const previous = at(key, revision - 1)?.object;
        const before = previous !== undefined && selection.matches(previous);
        const now = object !== undefined && selection.matches(object);
        if (now) expected.push({ type: before ? "MODIFIED" : "ADDED", key, revision, text: textOf(object) });
        else if (before) expected.push({ type: "DELETED", key, revision, text: textOf(previous) });
      }
      return expected;
    },
  };
}

/** Whether a received event equals the expected one. */
export const isEvent = (seen: SeenEvent, expected: ExpectedEvent): boolean =>
  seen.type === expected.type &&
  keyOf(seen.object) === expected.key &&
  revisionOf(seen.object) === expected.revision &&
  textOf(seen.object) === expected.text;

/** Canonical text for comparison, without the fields that legitimately differ between etcd and responses. */
export function textOf(object: KubeObject): string {
  const { apiVersion: _, kind: __, metadata, ...rest } = object as KubeObject & Record<string, unknown>;
  const { resourceVersion: ___, managedFields: ____, creationTimestamp: _____, ...kept } = metadata as Record<string, unknown>;
  return stable({ metadata: kept, ...rest });
}

function stable(value: unknown): string {
  return JSON.stringify(value, (_key, part: unknown) =>
    typeof part === "object" && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}

function firstAfter(versions: readonly Version[], revision: number): number {
  let low = 0;
  let high = versions.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((versions[middle] as Version).revision > revision) high = middle;
    else low = middle + 1;
  }
  return low;
}
