/**
 * Keeps track of who owns which field of the objects of one resource in one version, and merges applied configurations.
 * One field manager belongs to one endpoint: the resource itself or a subresource.
 * Source: k8s.io/apiserver pkg/endpoints/handlers/fieldmanager (fieldmanager.go, structuredmerge.go,
 * managedfieldsupdater.go, skipnonapplied.go, stripmeta.go); structured-merge-diff v4 merge/update.go
 */

import { badRequest, plainError } from "../../errors/status-error.ts";
import type { Steps } from "../../event-loop/steps.ts";
import { formatTime } from "../../meta/time.ts";
import type { KubeObject, ManagedFieldsEntry, Unstructured } from "../../meta/types.ts";
import type { ApplyType } from "./apply-type.ts";
import { type Comparison, compare, isSame, withoutFields } from "./compare.ts";
import { ApplyConflicts, type Conflict, conflictError, conflictsWith } from "./conflict.ts";
import { createdFields } from "./created-fields.ts";
import { difference, emptySet, equal, type FieldSet, has, intersection, recursiveDifference, setOf, union } from "./field-set.ts";
import { fieldsLastApplied, hasLastApplied, withLastApplied } from "./last-applied.ts";
import {
  capUpdateManagers,
  decodeManaged,
  encodeManaged,
  entryOfText,
  isReset,
  type Managed,
  type ManagedSet,
  type ManagerId,
  managerId,
  type Operation,
  withSet,
} from "./managed-fields.ts";
import { fieldElement } from "./path-element.ts";
import { reconcile } from "./reconcile.ts";
import { fieldSetOf, merge, removeFields } from "./typed-value.ts";
import { validateTyped } from "./validate.ts";

export interface FieldManagerOptions {
  /** The version of this endpoint, and of the objects it is given. */
  readonly apiVersion: string;
  readonly kind: string;
  readonly type: ApplyType;
  /** `""`, `status`, … */
  readonly subresource: string;
  /** Fields that this endpoint never takes from users: `status`, `metadata.labels`. */
  readonly resetFields: readonly string[];
  /**
   * The same object in another version of its resource, with the type there; undefined when there is no such version (any
   * more). The object may be a merged one, as a client would send it.
   * @throws Error when it cannot be converted
   */
  convert(object: KubeObject, from: string, to: string): { object: KubeObject; type: ApplyType } | undefined;
}

/** Works in steps, none of which is long for a body that the server takes. */
export interface FieldManager {
  /**
   * The entries after a create or an update.
   * @param live undefined when there was no object
   * @param next what is asked for, before the strategy and admission; not changed
   * @param now milliseconds since the epoch
   * @returns undefined: the object is not tracked
   */
  update(live: KubeObject | undefined, next: KubeObject, manager: string, now: number): Steps<ManagedFieldsEntry[] | undefined>;

  /**
   * Merges a configuration, as the client wrote it, into an object.
   * @param live undefined when there is no object yet
   * @returns the merged object with its entries, not yet checked against the schema; it shares parts of its arguments
   * @throws Conflict with a cause for each field, unless forced; BadRequest; 500 for a configuration that does not fit the schema
   */
  apply(live: KubeObject | undefined, config: Unstructured, manager: string, force: boolean, now: number): Steps<KubeObject>;
}

/** Never owned by anybody. */
const strippedFields: FieldSet = setOf(
  ["f:apiVersion"],
  ["f:kind"],
  ["f:metadata"],
  ...[
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
    "resourceVersion",
  ].map((name) => ["f:metadata", fieldElement(name)]),
);

const beforeFirstApply = "before-first-apply";
const lastAppliedManager = "kubectl";

export function newFieldManager(options: FieldManagerOptions): FieldManager {
  const { apiVersion, subresource } = options;
  const ignored = setOf(...options.resetFields.map((path) => path.split(".").map(fieldElement)));
  const unborn: KubeObject = Object.freeze({ apiVersion, kind: options.kind, metadata: Object.freeze({}) });

  const entryFor = (manager: string, operation: Operation): ManagedSet => ({
    manager: manager === "" ? "unknown" : manager,
    operation,
    apiVersion,
    subresource,
    time: undefined,
    set: emptySet,
  });

  return {
    *update(live, next, manager, now) {
      const managed = managedOf(live, next, subresource !== "");
      if (managed.size === 0) {
        if (live !== undefined) return undefined;
        const text = createdFields(options.type, next, ignored, strippedFields);
        yield;
        if (text === "{}") return undefined;
        if (text !== undefined) return [entryOfText(entryFor(manager, "Update"), formatTime(now), text)];
      }
      yield;
      yield* trackUpdate(managed, bare(live ?? unborn), bare(next), manager, now);
      capUpdateManagers(managed);
      yield;
      return encodeManaged(managed);
    },

    *apply(live, config, manager, force, now) {
      checkConfig(config, apiVersion);
      const before = bare(live ?? unborn);
      const managed = decodeForApply(live);
      yield;
      const fits = (object: KubeObject, failed: string): void => checkTyped(options.type, object, failed);
      if (managed.size === 0) {
        fits(before, "failed to create manager for existing fields: failed to convert new object (%) to smd typed");
        yield;
        yield* trackUpdate(managed, unborn, before, beforeFirstApply, now);
        capUpdateManagers(managed);
      }
      fits(config, "failed to create typed patch object (%)");
      yield;
      fits(before, "failed to create typed live object (%)");
      yield;
      let applied: { object: KubeObject; managed: Managed };
      try {
        applied = yield* applyWith(managed, before, config, manager, force, now);
      } catch (err) {
        if (!(err instanceof ApplyConflicts)) throw err;
        if (manager !== lastAppliedManager) throw conflictError(err.conflicts);
        const left = conflictsNotLastApplied(err.conflicts, before);
        if (left.length > 0) throw conflictError(left);
        applied = yield* applyWith(managed, before, config, manager, true, now);
      }
      let { object } = applied;
      if (manager === lastAppliedManager && hasLastApplied(object)) object = withLastApplied(object, config);
      yield;
      return withManaged(object, encodeManaged(applied.managed));
    },
  };

  /** Changes `managed` to what holds after an update from `live` to `next`. */
  function* trackUpdate(
    managed: Map<ManagerId, ManagedSet>,
    live: KubeObject,
    next: KubeObject,
    manager: string,
    now: number,
  ): Steps<void> {
    yield* reconcileAll(managed, live);
    const own = entryFor(manager, "Update");
    const id = managerId(own);
    const former = managed.get(id);
    const comparison = withoutFields(compare(options.type, live, next), ignored);
    if (isSame(comparison)) return;
    yield;
    yield* settle(managed, comparison, live, next, undefined, true);
    const taken = difference(union(comparison.modified, comparison.added), strippedFields);
    if (taken.size === 0) return;
    const set = union(taken, managed.get(id)?.set ?? emptySet);
    const time = former !== undefined && equal(former.set, set) ? former.time : formatTime(now);
    // An entry that is as it was stays the very same.
    if (former !== undefined && former.time === time && equal(former.set, set)) managed.set(id, former);
    else managed.set(id, { ...own, time, set });
  }

  /** One application; `managed` stays as it is. */
  function* applyWith(
    managed: Managed,
    live: KubeObject,
    config: Unstructured,
    manager: string,
    force: boolean,
    now: number,
  ): Steps<{ object: KubeObject; managed: Managed }> {
    const next = new Map(managed);
    yield* reconcileAll(next, live);
    const own = entryFor(manager, "Apply");
    const id = managerId(own);
    const last = next.get(id);
    const set = recursiveDifference(fieldSetOf(options.type, config), ignored);
    next.set(id, { ...own, set });
    yield;
    const merged = merge(options.type, live, config) as KubeObject;
    yield;
    const object = last === undefined || staysOwned(last, set, next) ? merged : yield* prune(merged, next, last);
    yield;
    const comparison = withoutFields(compare(options.type, live, object, true), ignored);
    yield;
    yield* settle(next, comparison, live, object, id, force);
    const changed = !isSame(comparison);
    const stripped = difference(set, strippedFields);
    if (stripped.size === 0) next.delete(id);
    else {
      next.set(id, { ...own, set: stripped });
      if (changed || !sameManaged(managed, next)) next.set(id, { ...own, time: formatTime(now), set: stripped });
      else next.set(id, managed.get(id) as ManagedSet);
    }
    return { object: changed ? object : live, managed: next };
  }

  /**
   * Takes from all but one manager what changed; those who have nothing left are gone, and those of versions that are no
   * more.
   * @throws ApplyConflicts when somebody would lose a field that is set to another value, and it is not forced
   */
  function* settle(
    managed: Map<ManagerId, ManagedSet>,
    comparison: Comparison,
    live: KubeObject,
    next: KubeObject,
    except: ManagerId | undefined,
    force: boolean,
  ): Steps<void> {
    const comparisons = new Map<string, Comparison | undefined>([[apiVersion, comparison]]);
    const conflicts: Conflict[] = [];
    const left = new Map<ManagerId, FieldSet>();
    for (const [id, entry] of [...managed].sort(([a], [b]) => (a < b ? -1 : 1))) {
      if (id === except) continue;
      const version = entry.apiVersion;
      if (!comparisons.has(version)) comparisons.set(version, compareIn(version, live, next));
      const there = comparisons.get(version);
      if (there === undefined) {
        managed.delete(id);
        continue;
      }
      const taken = intersection(entry.set, union(there.modified, there.added));
      if (taken.size > 0) conflicts.push(...(force ? [] : conflictsWith(entry, taken)));
      left.set(id, difference(difference(entry.set, taken), there.removed));
      yield;
    }
    if (conflicts.length > 0) throw new ApplyConflicts(conflicts);
    for (const [id, set] of left) {
      const entry = managed.get(id) as ManagedSet;
      if (set.size === 0) managed.delete(id);
      else if (set !== entry.set) managed.set(id, withSet(entry, set));
    }
  }

  function compareIn(version: string, live: KubeObject, next: KubeObject): Comparison | undefined {
    const old = options.convert(live, apiVersion, version);
    const changed = options.convert(next, apiVersion, version);
    if (old === undefined || changed === undefined) return undefined;
    return withoutFields(compare(old.type, old.object, changed.object), ignored);
  }

  /** Takes away what the manager applied the last time, not any more, and nobody else owns. */
  function* prune(merged: KubeObject, managed: Managed, last: ManagedSet): Steps<KubeObject> {
    const fieldsOf = memo(fieldSetOf);
    const start = inVersion(merged, apiVersion, last.apiVersion);
    if (start === undefined) return merged;
    let pruned = removeFields(start.type, start.object, last.set) as KubeObject;
    let version = last.apiVersion;
    let whole = start.object;
    for (const [owned, set] of ownedByVersion(managed)) {
      yield;
      const wholeThere = inVersion(whole, version, owned);
      const prunedThere = inVersion(pruned, version, owned);
      if (wholeThere === undefined || prunedThere === undefined) continue;
      const { type } = wholeThere;
      const kept = union(fieldsOf(type, prunedThere.object), set);
      yield;
      whole = wholeThere.object;
      version = owned;
      pruned = removeFields(type, whole, difference(fieldsOf(type, whole), kept)) as KubeObject;
    }
    const back = inVersion(pruned, version, last.apiVersion);
    if (back === undefined) return merged;
    yield;
    const gone = difference(fieldsOf(start.type, start.object), fieldsOf(start.type, back.object));
    yield;
    const result = removeFields(start.type, start.object, intersection(gone, last.set)) as KubeObject;
    return inVersion(result, last.apiVersion, apiVersion)?.object ?? merged;
  }

  /** What was applied the last time is applied again, so that there is nothing to take away. */
  function staysOwned(last: ManagedSet, set: FieldSet, managed: Managed): boolean {
    if (difference(last.set, set).size > 0 || last.apiVersion !== apiVersion) return false;
    return managed.values().every((owner) => owner.apiVersion === apiVersion);
  }

  function inVersion(object: KubeObject, from: string, to: string): { object: KubeObject; type: ApplyType } | undefined {
    if (from === to && to === apiVersion) return { object, type: options.type };
    return options.convert(object, from, to);
  }

  function* reconcileAll(managed: Map<ManagerId, ManagedSet>, live: KubeObject): Steps<void> {
    for (const [id, entry] of managed) {
      const there = inVersion(live, apiVersion, entry.apiVersion);
      if (there === undefined) continue; // it goes when something changes
      const set = reconcile(entry.set, there.type, there.object);
      if (set !== entry.set) managed.set(id, withSet(entry, set));
      yield;
    }
  }

  /** What is left of conflicts after those with fields that `kubectl apply` of the client set the last time. */
  function conflictsNotLastApplied(conflicts: readonly Conflict[], live: KubeObject): readonly Conflict[] {
    const allowed = fieldsLastApplied(options.type, apiVersion, live);
    if (allowed === undefined) return conflicts;
    return conflicts.filter(({ path }) => !has(allowed, path));
  }
}

/** The entries that an update begins with. */
function managedOf(live: KubeObject | undefined, next: KubeObject, onlyLive: boolean): Map<ManagerId, ManagedSet> {
  const own = next.metadata.managedFields;
  if (!onlyLive) {
    if (isReset(own)) return new Map();
    try {
      // A client that does not know the field must not delete it by accident.
      if (own !== undefined && own !== null && own.length > 0) return decodeManaged(own);
    } catch {
      // What cannot be read is as good as absent.
    }
  }
  try {
    return decodeManaged(live?.metadata.managedFields);
  } catch {
    return new Map();
  }
}

function decodeForApply(live: KubeObject | undefined): Map<ManagerId, ManagedSet> {
  try {
    return decodeManaged(live?.metadata.managedFields);
  } catch (err) {
    throw plainError(`failed to decode managed fields: ${(err as Error).message}`);
  }
}

/** Of an object in its one version. */
function memo(fieldsOf: (type: ApplyType, object: KubeObject) => FieldSet): typeof fieldsOf {
  const known = new Map<KubeObject, FieldSet>();
  return (type, object) => {
    const fields = known.get(object) ?? fieldsOf(type, object);
    known.set(object, fields);
    return fields;
  };
}

function ownedByVersion(managed: Managed): Map<string, FieldSet> {
  const owned = new Map<string, FieldSet>();
  for (const { apiVersion, set } of managed.values()) owned.set(apiVersion, union(owned.get(apiVersion) ?? emptySet, set));
  return owned;
}

function sameManaged(a: Managed, b: Managed): boolean {
  if (a.size !== b.size) return false;
  for (const [id, entry] of a) {
    const other = b.get(id);
    if (other === undefined || other.apiVersion !== entry.apiVersion || !equal(other.set, entry.set)) return false;
  }
  return true;
}

/** @throws BadRequest for a configuration that says what it must not, or not what it must. */
function checkConfig(config: Unstructured, apiVersion: string): void {
  const version = typeof config.apiVersion === "string" ? config.apiVersion : "";
  if (version !== apiVersion) {
    throw badRequest(`Incorrect version specified in apply patch. Specified patch version: ${version}, expected: ${apiVersion}`);
  }
  const entries: unknown = (config.metadata as Partial<KubeObject["metadata"]> | undefined)?.managedFields;
  if (entries !== undefined && entries !== null) throw badRequest("metadata.managedFields must be nil");
}

/** Without its entries, which are no fields to own. */
function bare(object: KubeObject): KubeObject {
  if (object.metadata?.managedFields === undefined) return object;
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}

function withManaged(object: KubeObject, entries: ManagedFieldsEntry[] | undefined): KubeObject {
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata: { ...metadata, ...(entries !== undefined && { managedFields: entries }) } };
}

/** @param failed what failed, `%` where the object is named. @throws 500, as upstream, for an object that does not fit */
function checkTyped(type: ApplyType, object: KubeObject, failed: string): void {
  try {
    validateTyped(type, object);
  } catch (err) {
    throw plainError(`${failed.replace("%", () => describeObject(object))}: ${(err as Error).message}`);
  }
}

/** `web/nginx; apps/v1, Kind=Deployment` */
export function describeObject({ apiVersion, kind, metadata }: Partial<KubeObject>): string {
  const groupVersion = apiVersion?.includes("/") ? apiVersion : `/${apiVersion ?? ""}`;
  return `${metadata?.namespace ?? ""}/${metadata?.name ?? ""}; ${groupVersion}, Kind=${kind ?? ""}`;
}
