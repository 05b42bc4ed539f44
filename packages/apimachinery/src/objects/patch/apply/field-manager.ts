/**
 * Tracks field ownership (metadata.managedFields) and merges applied configurations. Each endpoint, i.e. a resource or
 * subresource in one version, has its own field manager.
 * Source: k8s.io/apiserver pkg/endpoints/handlers/fieldmanager (fieldmanager.go, structuredmerge.go,
 * managedfieldsupdater.go, skipnonapplied.go, stripmeta.go); structured-merge-diff v4 merge/update.go
 */

import type { Steps } from "../../../process/event-loop/steps.ts";
import { messageOf } from "../../errors/message.ts";
import { badRequest, plainError } from "../../errors/status-error.ts";
import { formatTime } from "../../meta/time.ts";
import type { KubeObject, ManagedFieldsEntry, Unstructured } from "../../meta/types.ts";
import type { ApplyType } from "./apply-type.ts";
import { type Comparison, compare, compareInSteps, isSame, withoutFields } from "./compare.ts";
import { ApplyConflicts, type Conflict, conflictError, conflictsWith } from "./conflict.ts";
import { createdFields } from "./created-fields.ts";
import { difference, emptySet, equal, type FieldSet, has, intersection, recursiveDifference, setOf, union } from "./field-set.ts";
import { fieldsLastApplied, hasLastApplied, withLastApplied } from "./last-applied.ts";
import {
  capUpdateManagers,
  decodeManagedInSteps,
  encodeManagedInSteps,
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
import { reconcileInSteps } from "./reconcile.ts";
import { fieldSetInSteps, mergeInSteps, removeFieldsInSteps } from "./typed-value.ts";
import { validateTypedInSteps } from "./validate.ts";

export interface FieldManagerOptions {
  /** Group version of the endpoint and of the objects passed to it. */
  readonly apiVersion: string;
  readonly kind: string;
  readonly type: ApplyType;
  /** `""` for the resource itself, else e.g. `status`. */
  readonly subresource: string;
  /** Paths that this endpoint never accepts from clients, e.g. `status`, `metadata.labels`. */
  readonly resetFields: readonly string[];
  /**
   * Converts an object to another version of its resource; undefined when the version does not exist (any more). The object
   * may be a merged one that is not canonical.
   * @throws Error when the conversion fails
   */
  convert(object: KubeObject, from: string, to: string): { object: KubeObject; type: ApplyType } | undefined;
}

/** Fields whose ownership is never tracked. */
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

/**
 * The field manager of one endpoint, which its requests share: it keeps nothing of them. The methods are generators that yield
 * between short steps, so that callers can yield to the event loop.
 */
export class FieldManager {
  readonly #options: FieldManagerOptions;
  readonly #ignored: FieldSet;
  readonly #unborn: KubeObject;

  constructor(options: FieldManagerOptions) {
    this.#options = options;
    const { apiVersion } = options;
    this.#ignored = setOf(...options.resetFields.map((path) => path.split(".").map(fieldElement)));
    this.#unborn = Object.freeze({ apiVersion, kind: options.kind, metadata: Object.freeze({}) });
  }

  /**
   * Computes the managedFields entries after a create or an update.
   * @param live the stored object; undefined for a create
   * @param next the requested object, before strategy and admission; not mutated
   * @param now milliseconds since the Unix epoch
   * @returns undefined when ownership of the object is not tracked
   */
  *update(live: KubeObject | undefined, next: KubeObject, manager: string, now: number): Steps<ManagedFieldsEntry[] | undefined> {
    const { subresource } = this.#options;
    const managed = yield* managedOf(live, next, subresource !== "");
    if (managed.size === 0) {
      if (live !== undefined) return undefined;
      const text = createdFields(this.#options.type, next, this.#ignored, strippedFields);
      yield;
      if (text === "{}") return undefined;
      if (text !== undefined) return [yield* entryOfText(this.#entryFor(manager, "Update"), formatTime(now), text)];
    }
    yield;
    yield* this.#trackUpdate(managed, bare(live ?? this.#unborn), bare(next), manager, now);
    capUpdateManagers(managed);
    yield;
    return yield* encodeManagedInSteps(managed);
  }

  /**
   * Merges an applied configuration, as the client wrote it, into an object.
   * @param live the stored object; undefined for a create
   * @returns the merged object with its entries, not yet validated; it shares structure with the arguments
   * @throws Conflict with a cause for each field, unless forced; BadRequest; 500 for a configuration that does not fit the schema
   */
  *apply(live: KubeObject | undefined, config: Unstructured, manager: string, force: boolean, now: number): Steps<KubeObject> {
    const { apiVersion } = this.#options;
    checkConfig(config, apiVersion);
    const before = bare(live ?? this.#unborn);
    const managed = yield* decodeForApply(live);
    yield;
    const fits = (object: KubeObject, failed: string): Steps<void> => checkTyped(this.#options.type, object, failed);
    if (managed.size === 0) {
      yield* fits(before, "failed to create manager for existing fields: failed to convert new object (%) to smd typed");
      yield;
      yield* this.#trackUpdate(managed, this.#unborn, before, beforeFirstApply, now);
      capUpdateManagers(managed);
    }
    yield* fits(config, "failed to create typed patch object (%)");
    yield;
    yield* fits(before, "failed to create typed live object (%)");
    yield;
    let applied: { object: KubeObject; managed: Managed };
    try {
      applied = yield* this.#applyWith(managed, before, config, manager, force, now);
    } catch (err) {
      if (!(err instanceof ApplyConflicts)) throw err;
      if (manager !== lastAppliedManager) throw conflictError(err.conflicts);
      const left = this.#conflictsNotLastApplied(err.conflicts, before);
      if (left.length > 0) throw conflictError(left);
      applied = yield* this.#applyWith(managed, before, config, manager, true, now);
    }
    let { object } = applied;
    if (manager === lastAppliedManager && hasLastApplied(object)) object = withLastApplied(object, config);
    yield;
    return withManaged(object, yield* encodeManagedInSteps(applied.managed));
  }

  #entryFor(manager: string, operation: Operation): ManagedSet {
    const { apiVersion, subresource } = this.#options;
    return {
      manager: manager === "" ? "unknown" : manager,
      operation,
      apiVersion,
      subresource,
      time: undefined,
      set: emptySet,
    };
  }

  /** Updates `managed` for a change from `live` to `next`. */
  *#trackUpdate(
    managed: Map<ManagerId, ManagedSet>,
    live: KubeObject,
    next: KubeObject,
    manager: string,
    now: number,
  ): Steps<void> {
    yield* this.#reconcileAll(managed, live);
    const own = this.#entryFor(manager, "Update");
    const id = managerId(own);
    const former = managed.get(id);
    const comparison = withoutFields(yield* compareInSteps(this.#options.type, live, next), this.#ignored);
    yield;
    if (isSame(comparison)) return;
    yield* this.#settle(managed, comparison, live, next, undefined, true);
    const changed = union(comparison.modified, comparison.added);
    yield;
    const taken = difference(changed, strippedFields);
    if (taken.size === 0) return;
    yield;
    const set = union(taken, managed.get(id)?.set ?? emptySet);
    yield;
    // Keep the identity of an unchanged entry, so that its original FieldsV1 is written again.
    if (former !== undefined && equal(former.set, set)) managed.set(id, former);
    else managed.set(id, { ...own, time: formatTime(now), set });
  }

  /** One apply operation; `managed` is not mutated. */
  *#applyWith(
    managed: Managed,
    live: KubeObject,
    config: Unstructured,
    manager: string,
    force: boolean,
    now: number,
  ): Steps<{ object: KubeObject; managed: Managed }> {
    const next = new Map(managed);
    yield* this.#reconcileAll(next, live);
    const own = this.#entryFor(manager, "Apply");
    const id = managerId(own);
    const last = next.get(id);
    const set = recursiveDifference(yield* fieldSetInSteps(this.#options.type, config), this.#ignored);
    next.set(id, { ...own, set });
    yield;
    // Cast: merging and pruning keep an object an object.
    const merged = (yield* mergeInSteps(this.#options.type, live, config)) as KubeObject;
    yield;
    const object = last === undefined || this.#staysOwned(last, set, next) ? merged : yield* this.#prune(merged, next, last);
    yield;
    const comparison = withoutFields(yield* compareInSteps(this.#options.type, live, object, true), this.#ignored);
    yield;
    yield* this.#settle(next, comparison, live, object, id, force);
    const changed = !isSame(comparison);
    yield;
    const stripped = difference(set, strippedFields);
    if (stripped.size === 0) next.delete(id);
    else {
      next.set(id, { ...own, set: stripped });
      if (changed || !sameManaged(managed, next)) next.set(id, { ...own, time: formatTime(now), set: stripped });
      else next.set(id, managed.get(id)!);
    }
    return { object: changed ? object : live, managed: next };
  }

  /**
   * Removes changed fields from the sets of all managers except one. Entries without fields, and entries of versions that
   * no longer exist, are deleted.
   * @throws ApplyConflicts when another manager would lose a field whose value changes, unless forced
   */
  *#settle(
    managed: Map<ManagerId, ManagedSet>,
    comparison: Comparison,
    live: KubeObject,
    next: KubeObject,
    except: ManagerId | undefined,
    force: boolean,
  ): Steps<void> {
    const { apiVersion } = this.#options;
    const comparisons = new Map<string, Comparison | undefined>([[apiVersion, comparison]]);
    const conflicts: Conflict[] = [];
    const left = new Map<ManagerId, FieldSet>();
    for (const [id, entry] of [...managed].sort(([a], [b]) => (a < b ? -1 : 1))) {
      if (id === except) continue;
      const version = entry.apiVersion;
      if (!comparisons.has(version)) comparisons.set(version, this.#compareIn(version, live, next));
      const there = comparisons.get(version);
      if (there === undefined) {
        managed.delete(id);
        continue;
      }
      const changed = union(there.modified, there.added);
      yield;
      const taken = intersection(entry.set, changed);
      yield;
      if (taken.size > 0) conflicts.push(...(force ? [] : conflictsWith(entry, taken)));
      const kept = difference(entry.set, taken);
      yield;
      left.set(id, difference(kept, there.removed));
      yield;
    }
    if (conflicts.length > 0) throw new ApplyConflicts(conflicts);
    for (const [id, set] of left) {
      const entry = managed.get(id)!;
      if (set.size === 0) managed.delete(id);
      else if (set !== entry.set) managed.set(id, withSet(entry, set));
    }
  }

  #compareIn(version: string, live: KubeObject, next: KubeObject): Comparison | undefined {
    const { apiVersion } = this.#options;
    const old = this.#options.convert(live, apiVersion, version);
    const changed = this.#options.convert(next, apiVersion, version);
    if (old === undefined || changed === undefined) return undefined;
    return withoutFields(compare(old.type, old.object, changed.object), this.#ignored);
  }

  /** Removes fields that the manager applied last time but no longer does, and that no other manager owns. */
  *#prune(merged: KubeObject, managed: Managed, last: ManagedSet): Steps<KubeObject> {
    const { apiVersion } = this.#options;
    const fieldsOf = memo(fieldSetInSteps);
    const start = this.#inVersion(merged, apiVersion, last.apiVersion);
    if (start === undefined) return merged;
    // Cast: merging and pruning keep an object an object.
    let pruned = (yield* removeFieldsInSteps(start.type, start.object, last.set)) as KubeObject;
    let version = last.apiVersion;
    let whole = start.object;
    for (const [owned, set] of ownedByVersion(managed)) {
      yield;
      const wholeThere = this.#inVersion(whole, version, owned);
      const prunedThere = this.#inVersion(pruned, version, owned);
      if (wholeThere === undefined || prunedThere === undefined) continue;
      const { type } = wholeThere;
      const kept = union(yield* fieldsOf(type, prunedThere.object), set);
      yield;
      whole = wholeThere.object;
      version = owned;
      const gone = difference(yield* fieldsOf(type, whole), kept);
      yield;
      // Cast: merging and pruning keep an object an object.
      pruned = (yield* removeFieldsInSteps(type, whole, gone)) as KubeObject;
    }
    const back = this.#inVersion(pruned, version, last.apiVersion);
    if (back === undefined) return merged;
    yield;
    const gone = difference(yield* fieldsOf(start.type, start.object), yield* fieldsOf(start.type, back.object));
    yield;
    const removed = intersection(gone, last.set);
    yield;
    // Cast: merging and pruning keep an object an object.
    const result = (yield* removeFieldsInSteps(start.type, start.object, removed)) as KubeObject;
    return this.#inVersion(result, last.apiVersion, apiVersion)?.object ?? merged;
  }

  /** True when all previously applied fields are applied again, so that nothing has to be pruned. */
  #staysOwned(last: ManagedSet, set: FieldSet, managed: Managed): boolean {
    const { apiVersion } = this.#options;
    if (difference(last.set, set).size > 0 || last.apiVersion !== apiVersion) return false;
    return managed.values().every((owner) => owner.apiVersion === apiVersion);
  }

  #inVersion(object: KubeObject, from: string, to: string): { object: KubeObject; type: ApplyType } | undefined {
    const { apiVersion } = this.#options;
    if (from === to && to === apiVersion) return { object, type: this.#options.type };
    return this.#options.convert(object, from, to);
  }

  *#reconcileAll(managed: Map<ManagerId, ManagedSet>, live: KubeObject): Steps<void> {
    const { apiVersion } = this.#options;
    for (const [id, entry] of managed) {
      const there = this.#inVersion(live, apiVersion, entry.apiVersion);
      if (there === undefined) continue; // the entry is deleted by settle when something changes
      const set = yield* reconcileInSteps(entry.set, there.type, there.object);
      if (set !== entry.set) managed.set(id, withSet(entry, set));
      yield;
    }
  }

  /** The conflicts that remain without the fields that client-side `kubectl apply` set last. */
  #conflictsNotLastApplied(conflicts: readonly Conflict[], live: KubeObject): readonly Conflict[] {
    const { apiVersion } = this.#options;
    const allowed = fieldsLastApplied(this.#options.type, apiVersion, live);
    if (allowed === undefined) return conflicts;
    return conflicts.filter(({ path }) => !has(allowed, path));
  }
}

/** The entries before an update. @param onlyLive ignore entries in the request, as subresources do */
function* managedOf(live: KubeObject | undefined, next: KubeObject, onlyLive: boolean): Steps<Map<ManagerId, ManagedSet>> {
  const own = next.metadata.managedFields;
  if (!onlyLive) {
    if (isReset(own)) return new Map();
    try {
      // Absent entries in the request do not reset them: a client may not know the field.
      if (own !== undefined && own !== null && own.length > 0) return yield* decodeManagedInSteps(own);
    } catch {
      // Invalid entries in the request are ignored.
    }
  }
  try {
    return yield* decodeManagedInSteps(live?.metadata.managedFields);
  } catch {
    return new Map();
  }
}

function* decodeForApply(live: KubeObject | undefined): Steps<Map<ManagerId, ManagedSet>> {
  try {
    return yield* decodeManagedInSteps(live?.metadata.managedFields);
  } catch (err) {
    throw plainError(`failed to decode managed fields: ${messageOf(err)}`);
  }
}

/** Caches `fieldsOf` by object; each object is only used with one type. */
function memo(fieldsOf: (type: ApplyType, object: KubeObject) => Steps<FieldSet>): typeof fieldsOf {
  const known = new Map<KubeObject, FieldSet>();
  return function* (type, object) {
    const fields = known.get(object) ?? (yield* fieldsOf(type, object));
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

/** @throws BadRequest for a configuration of another version, and for one with managedFields */
function checkConfig(config: Unstructured, apiVersion: string): void {
  const version = typeof config.apiVersion === "string" ? config.apiVersion : "";
  if (version !== apiVersion) {
    throw badRequest(`Incorrect version specified in apply patch. Specified patch version: ${version}, expected: ${apiVersion}`);
  }
  // Cast: the client may have sent an object without metadata.
  const entries: unknown = (config.metadata as Partial<KubeObject["metadata"]> | undefined)?.managedFields;
  if (entries !== undefined && entries !== null) throw badRequest("metadata.managedFields must be nil");
}

/** The object without managedFields, which cannot be owned. */
function bare(object: KubeObject): KubeObject {
  if (object.metadata?.managedFields === undefined) return object;
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}

function withManaged(object: KubeObject, entries: ManagedFieldsEntry[] | undefined): KubeObject {
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata: { ...metadata, ...(entries !== undefined && { managedFields: entries }) } };
}

/** @param failed start of the error text; `%` stands for the object. @throws Error (500, as upstream) for an invalid object */
function* checkTyped(type: ApplyType, object: KubeObject, failed: string): Steps<void> {
  try {
    yield* validateTypedInSteps(type, object);
  } catch (err) {
    throw plainError(`${failed.replace("%", () => describeObject(object))}: ${messageOf(err)}`);
  }
}

/** `web/nginx; apps/v1, Kind=Deployment` */
export function describeObject({ apiVersion, kind, metadata }: Partial<KubeObject>): string {
  const groupVersion = apiVersion?.includes("/") ? apiVersion : `/${apiVersion ?? ""}`;
  return `${metadata?.namespace ?? ""}/${metadata?.name ?? ""}; ${groupVersion}, Kind=${kind ?? ""}`;
}
