/**
 * Merges OpenAPI documents: on conflict, the paths of the first document win; definitions of the same name with different
 * content are renamed (`…_v2`, `…_v3`), and references to them are updated.
 * Source: k8s.io/kube-openapi pkg/aggregator/aggregator.go
 */

import { deepEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { PathItem, Schema } from "@coxswain/apimachinery/objects/schema/openapi/document";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import type { SpecDocument } from "./spec-document.ts";

const prefix = "#/definitions/";
const kindsKey = "x-kubernetes-group-version-kind";

/** Does not modify its arguments. Each step processes one definition or path. */
export function* mergeSpecs(into: SpecDocument, other: SpecDocument): Steps<SpecDocument> {
  const paths = [...other.paths.keys()].filter((path) => !into.paths.has(path));
  if (paths.length === 0) return into;
  const source = paths.length === other.paths.size ? other : yield* keepPaths(other, (path) => !into.paths.has(path));
  const renames = yield* renamesFor(into.definitions, source.definitions);
  const definitions = new Map(into.definitions);
  for (const [name, schema] of source.definitions) {
    const renamed = renames.get(name) ?? name;
    const own = withRenamed(schema, renames);
    const existing = definitions.get(renamed);
    definitions.set(renamed, existing === undefined ? own : withKindsOf(existing, own));
    yield;
  }
  const all = new Map(into.paths);
  for (const [path, item] of source.paths) {
    all.set(path, withRenamed(item, renames));
    yield;
  }
  return { paths: all, definitions };
}

/** Filters paths; drops definitions that only removed paths refer to. Definitions that no path refers to are kept. */
export function* keepPaths(spec: SpecDocument, isKept: (path: string) => boolean): Steps<SpecDocument> {
  const paths = new Map([...spec.paths].filter(([path]) => isKept(path)));
  if (paths.size === spec.paths.size) return spec;
  const all = yield* referencesOf(spec.definitions, spec.paths.values());
  const used = yield* referencesOf(spec.definitions, paths.values());
  return { paths, definitions: new Map([...spec.definitions].filter(([name]) => used.has(name) || !all.has(name))) };
}

/** Names of definitions reachable from the paths. */
function* referencesOf(definitions: ReadonlyMap<string, Schema>, paths: Iterable<PathItem>): Steps<Set<string>> {
  const found = new Set<string>();
  const waiting: unknown[] = [...paths];
  while (waiting.length > 0) {
    eachReference(waiting.pop(), (name) => {
      if (found.has(name)) return;
      found.add(name);
      waiting.push(definitions.get(name));
    });
    yield;
  }
  return found;
}

function eachReference(value: unknown, report: (name: string) => void): void {
  mapReferences(value, (name) => {
    report(name);
    return name;
  });
}

/** A copy with references to the new names; the value itself when nothing is renamed. */
function withRenamed<T>(value: T, renames: ReadonlyMap<string, string>): T {
  // Cast: only names in references change.
  return renames.size === 0 ? value : (mapReferences(value, (name) => renames.get(name) ?? name) as T);
}

/** @param ofNames the keys of `value` are user-defined names, such as a property called `default` */
function mapReferences(value: unknown, map: (name: string) => string, ofNames = false): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((one) => mapReferences(one, map));
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => {
      if (ofNames) return [name, mapReferences(member, map)];
      if (isValue(name)) return [name, member];
      if (name !== "$ref" || typeof member !== "string") return [name, mapReferences(member, map, name === "properties")];
      return [name, member.startsWith(prefix) ? prefix + map(member.slice(prefix.length)) : member];
    }),
  );
}

/** Members that hold arbitrary values instead of schemas. */
function isValue(name: string): boolean {
  return name === "default" || name === "enum" || name === "example" || name.startsWith("x-");
}

/** Processes names in sorted order, to be deterministic. */
function* renamesFor(existing: ReadonlyMap<string, Schema>, source: ReadonlyMap<string, Schema>): Steps<Map<string, string>> {
  const renames = new Map<string, string>();
  const taken = new Set([...existing.keys(), ...source.keys()]);
  for (const name of [...source.keys()].sort()) {
    yield;
    const schema = source.get(name)!;
    const first = existing.get(name);
    if (first === undefined || isSameButForKinds(first, schema)) continue;
    for (let i = 2; ; i++) {
      const candidate = `${name}_v${i}`;
      const before = existing.get(candidate);
      if (before !== undefined && isSameButForKinds(before, schema)) {
        renames.set(name, candidate);
        break;
      }
      if (taken.has(candidate)) continue;
      renames.set(name, candidate);
      taken.add(candidate);
      break;
    }
  }
  return renames;
}

function isSameButForKinds(a: Schema, b: Schema): boolean {
  return deepEqual({ ...a, [kindsKey]: undefined }, { ...b, [kindsKey]: undefined });
}

/** Merges the x-kubernetes-group-version-kind lists of a type shared by several servers. */
function withKindsOf(existing: Schema, other: Schema): Schema {
  const [mine, theirs] = [kindsOf(existing), kindsOf(other)];
  const known = new Set(mine.map(([key]) => key));
  const more = theirs.filter(([key]) => !known.has(key));
  if (more.length === 0) return existing;
  const kinds = [...mine, ...more].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, kind]) => kind);
  return { ...existing, [kindsKey]: kinds };
}

function kindsOf(schema: Schema): [string, unknown][] {
  const kinds = schema[kindsKey];
  if (!Array.isArray(kinds)) return [];
  return kinds.map((kind: unknown) => {
    const { group, version, kind: name } = (kind ?? {}) as Record<string, unknown>; // cast: each field is turned into text, whatever it is
    return [`${String(group)}/${String(version)}.${String(name)}`, kind];
  });
}
