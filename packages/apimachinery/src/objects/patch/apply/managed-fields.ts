/**
 * `metadata.managedFields` as field sets by manager. An entry is identified by manager, operation and subresource; an
 * Update entry also by its version.
 * Source: k8s.io/apiserver pkg/endpoints/handlers/fieldmanager/internal/managedfields.go, capmanagers.go
 */

import { atOnce, type Steps } from "../../../process/event-loop/steps.ts";
import { type FieldsV1, sharedFieldsInSteps } from "../../codec/fields-v1.ts";
import { goQuote } from "../../meta/go-quote.ts";
import type { ManagedFieldsEntry } from "../../meta/types.ts";
import { emptySet, type FieldSet, readFieldsV1, shareFieldsV1, toFieldsV1InSteps, unionAll } from "./field-set.ts";

export type Operation = "Apply" | "Update";

/** Identifies an entry; see `managerId`. */
export type ManagerId = string;

/** A decoded managedFields entry. */
export interface ManagedSet {
  readonly manager: string;
  readonly operation: Operation;
  readonly apiVersion: string;
  readonly subresource: string;
  /** RFC 3339, whole seconds; undefined when unknown. */
  readonly time: string | undefined;
  readonly set: FieldSet;
  /** The decoded entry, which is written again unchanged as long as nothing in it changes. */
  readonly source?: ManagedFieldsEntry;
}

export type Managed = ReadonlyMap<ManagerId, ManagedSet>;

/** The identity of an entry. Apply entries do not depend on the version. */
export function managerId(entry: Pick<ManagedSet, "manager" | "operation" | "apiVersion" | "subresource">): ManagerId {
  const version = entry.operation === "Apply" ? "" : entry.apiVersion;
  return `${entry.manager}\n${entry.operation}\n${version}\n${entry.subresource}`;
}

/** The same manager with another set; drops `source`. */
export function withSet({ manager, operation, apiVersion, subresource, time }: ManagedSet, set: FieldSet): ManagedSet {
  return { manager, operation, apiVersion, subresource, time, set };
}

/**
 * @param entries must not be mutated afterwards: unchanged ones are reused by `encodeManaged`
 * @throws Error for an invalid entry
 */
export function decodeManaged(entries: readonly ManagedFieldsEntry[] | undefined): Map<ManagerId, ManagedSet> {
  return atOnce(decodeManagedInSteps(entries));
}

/** As `decodeManaged`, for entries of any number and size. */
export function* decodeManagedInSteps(entries: readonly ManagedFieldsEntry[] | undefined): Steps<Map<ManagerId, ManagedSet>> {
  const managed = new Map<ManagerId, ManagedSet>();
  for (const [i, entry] of (entries ?? []).entries()) {
    const decoded = yield* decodeEntry(entry, i);
    managed.set(managerId(decoded), decoded);
    yield;
  }
  return managed;
}

function* decodeEntry(entry: ManagedFieldsEntry, index: number): Steps<ManagedSet> {
  if (entry.operation !== "Apply" && entry.operation !== "Update") throw new Error("operation must be `Apply` or `Update`");
  if (!entry.apiVersion) throw new Error("apiVersion must not be empty");
  if (!entry.fieldsType) throw new Error(`missing fieldsType in managed fields entry ${index}`);
  if (entry.fieldsType !== "FieldsV1") {
    throw new Error(`invalid fieldsType ${goQuote(entry.fieldsType)} in managed fields entry ${index}`);
  }
  const fieldsV1 = entry.fieldsV1 == null ? undefined : shareFieldsV1(entry.fieldsV1);
  yield;
  return {
    manager: entry.manager ?? "",
    operation: entry.operation,
    apiVersion: entry.apiVersion,
    subresource: entry.subresource ?? "",
    time: entry.time ?? undefined,
    set: readFieldsV1(fieldsV1),
    source: fieldsV1 === undefined || fieldsV1 === entry.fieldsV1 ? entry : { ...entry, fieldsV1 },
  };
}

/** @returns entries in upstream's order; undefined when there are none. The entries are shared and read-only. */
export function encodeManaged(managed: Managed): ManagedFieldsEntry[] | undefined {
  return atOnce(encodeManagedInSteps(managed));
}

/** As `encodeManaged`, for entries of any number and size. */
export function* encodeManagedInSteps(managed: Managed): Steps<ManagedFieldsEntry[] | undefined> {
  if (managed.size === 0) return undefined;
  const entries: ManagedFieldsEntry[] = [];
  for (const set of [...managed.values()].sort(compareSets)) {
    if (set.source !== undefined) entries.push(set.source);
    else entries.push(entryWith(set, set.time, yield* toFieldsV1InSteps(set.set)));
    yield;
  }
  return entries;
}

/** An entry from the text of its FieldsV1. */
export function* entryOfText(owner: ManagedSet, time: string, fields: string): Steps<ManagedFieldsEntry> {
  return entryWith(owner, time, yield* sharedFieldsInSteps(fields));
}

function entryWith(owner: ManagedSet, time: string | undefined, fieldsV1: FieldsV1): ManagedFieldsEntry {
  return {
    ...(owner.manager !== "" && { manager: owner.manager }),
    operation: owner.operation,
    apiVersion: owner.apiVersion,
    ...(time !== undefined && { time }),
    fieldsType: "FieldsV1",
    fieldsV1,
    ...(owner.subresource !== "" && { subresource: owner.subresource }),
  };
}

/** Apply before Update, then by time, oldest first. */
function compareSets(a: ManagedSet, b: ManagedSet): number {
  return (
    compareText(a.operation, b.operation) ||
    secondsOf(a.time) - secondsOf(b.time) ||
    compareText(a.manager, b.manager) ||
    compareText(a.apiVersion, b.apiVersion) ||
    compareText(a.subresource, b.subresource)
  );
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function secondsOf(time: string | undefined): number {
  return time === undefined ? 0 : Math.floor(Date.parse(time) / 1000) || 0;
}

/** Maximum number of entries with operation Update. */
export const maxUpdateManagers = 10;
const oldUpdatesManager = "ancient-changes";

/** Merges the oldest Update entries of each version into one while there are too many. Mutates its argument. */
export function capUpdateManagers(managed: Map<ManagerId, ManagedSet>): void {
  const updates = [...managed].filter(([, set]) => set.operation === "Update");
  let count = updates.length;
  if (count <= maxUpdateManagers) return;
  updates.sort(([idA, a], [idB, b]) => secondsOf(a.time) - secondsOf(b.time) || compareText(idA, idB));
  const firstOfVersion = new Map<string, ManagerId>();
  const collected = new Map<ManagerId, FieldSet[]>();
  for (const [id, update] of updates) {
    if (count <= maxUpdateManagers) break;
    const { apiVersion } = update;
    const first = firstOfVersion.get(apiVersion);
    if (first === undefined) {
      firstOfVersion.set(apiVersion, id);
      continue;
    }
    const bucket = { manager: oldUpdatesManager, operation: "Update" as const, apiVersion, subresource: "" };
    const bucketId = managerId(bucket);
    let sets = collected.get(bucketId);
    if (sets === undefined) {
      const beginning = managed.has(bucketId) ? bucketId : first;
      sets = [managed.get(beginning)?.set ?? emptySet];
      managed.delete(beginning);
      collected.set(bucketId, sets);
    }
    sets.push(update.set);
    managed.delete(id);
    managed.set(bucketId, { ...bucket, time: update.time, set: emptySet });
    count--;
  }
  // One union per bucket: there may be thousands of entries.
  for (const [id, sets] of collected) managed.set(id, { ...managed.get(id)!, set: unionAll(sets) });
}

/** True for an empty list or a single empty entry, with which a client removes all entries. */
export function isReset(entries: readonly ManagedFieldsEntry[] | undefined | null): boolean {
  if (entries === undefined || entries === null) return false;
  if (entries.length === 0) return true;
  return (
    entries.length === 1 && Object.values(entries[0]!).every((value) => value === undefined || value === "" || value === null)
  );
}
