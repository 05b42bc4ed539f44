import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { DeleteOptions, KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Entry, Storage } from "../../storage/storage.ts";
import { beforeDelete, type Deletion, markAsDeleting } from "./before-delete.ts";
import { isDryRun } from "./dry-run.ts";
import { finalizersForDeletion } from "./graceful-delete.ts";
import type { ResourceDefinition } from "./resource.ts";
import type { Strategy, StrategyContext } from "./strategy.ts";

/**
 * Deletes one object or marks it for deletion. Source: k8s.io/apiserver pkg/registry/generic/registry/store.go Delete
 * @returns `deleted`: true and the last state when the object was removed; false and the state with deletionTimestamp when
 *   finalizers or a grace period keep it
 * @throws NotFound, Conflict when preconditions fail
 */
type Remove = (
  ctx: StrategyContext,
  name: string,
  options: DeleteOptions,
  validateAdmission?: (old: KubeObject) => Promise<void>,
) => Promise<{ entry: Entry; deleted: boolean }>;

interface RemoveParts {
  readonly definition: ResourceDefinition;
  readonly strategy: Strategy;
  readonly storage: Storage;
  /** The storage key of an object. */
  keyOf(namespace: string, name: string): string;
  /** Adds the orphan and foregroundDeletion finalizers that the propagation policy requires. */
  readonly garbageCollection: boolean;
  /** TTL to keep on the write that marks the object; empty for resources that do not expire. */
  readonly expiry: { readonly ttlSeconds?: number };
}

/** One deletion; started again after a concurrent change. */
interface Attempt {
  readonly ctx: StrategyContext;
  readonly name: string;
  readonly options: DeleteOptions;
  readonly validateAdmission: ((old: KubeObject) => Promise<void>) | undefined;
  readonly dryRun: boolean;
  /** true on the retry after a concurrent change: a cached state is no longer trusted */
  readonly again: boolean;
}

/** Whether the object is kept, and the state to write first; undefined: nothing to write. */
interface Decision {
  readonly stays: boolean;
  readonly object: KubeObject | undefined;
}

/** What was decided, and on which state. */
interface Marking {
  readonly stays: boolean;
  /** The state written, or without a write the one decided on. */
  readonly entry: Entry;
  readonly written: boolean;
}

/** The delete operation of a generic store. */
export function newRemove(parts: RemoveParts): Remove {
  return (ctx, name, options, validateAdmission) => {
    const dryRun = ctx.dryRun || isDryRun(options);
    return remove(parts, { ctx, name, options, validateAdmission, dryRun, again: false });
  };
}

async function remove(parts: RemoveParts, attempt: Attempt): Promise<{ entry: Entry; deleted: boolean }> {
  const { ctx, dryRun } = attempt;
  const marking = await mark(parts, attempt);
  if (marking.stays) return { entry: marking.entry, deleted: false };
  if (dryRun && marking.written) return { entry: marking.entry, deleted: true };
  let entry: Entry;
  try {
    entry = await removeMarked(parts, attempt, marking);
  } catch (err) {
    if (err === changedMeanwhile) return remove(parts, { ...attempt, again: true });
    // Marked by this request and then removed by another client (a kubelet): the deletion has succeeded.
    if (!isNotFound(err) || !marking.written) throw err;
    entry = marking.entry;
  }
  if (!dryRun) await parts.strategy.afterDelete?.(entry.object(), ctx);
  return { entry, deleted: true };
}

/** A single guaranteedUpdate decides between marking (and keeping or removing it right after), removing and no change. */
async function mark(parts: RemoveParts, { ctx, name, options, validateAdmission, dryRun, again }: Attempt): Promise<Marking> {
  const { definition, strategy, storage } = parts;
  let stays = true;
  let seen: Entry | undefined;
  const change = async (stored: Entry | undefined): Promise<KubeObject> => {
    seen = stored!;
    const current = seen.object();
    // Also checks the preconditions; the write applies to exactly this revision.
    const deletion = beforeDelete(definition, strategy, ctx, current, options);
    await validateAdmission?.(current);
    const decision = decide(parts, ctx, current, deletion, options);
    stays = decision.stays;
    if (decision.object === undefined) throw nothingToWrite;
    return decision.object;
  };
  try {
    const entry = await storage.guaranteedUpdate(parts.keyOf(ctx.namespace, name), change, {
      ...parts.expiry,
      dryRun,
      // A decision on a cached state is final: the delete that follows re-checks when the revision differs.
      settles: (thrown) => thrown === nothingToWrite && !stays && !dryRun && !again,
    });
    return { stays, entry, written: true };
  } catch (err) {
    if (err !== nothingToWrite) throw err;
    return { stays, entry: seen!, written: false };
  }
}

/** @throws changedMeanwhile when the decision has to be made again */
function removeMarked(parts: RemoveParts, attempt: Attempt, { entry, written }: Marking): Promise<Entry> {
  const { ctx, name, validateAdmission, dryRun, again } = attempt;
  const preconditions = { ...attempt.options.preconditions };
  if (written && preconditions.resourceVersion !== undefined) {
    preconditions.resourceVersion = String(entry.revision); // marking changed the resourceVersion
  }
  return parts.storage.delete(parts.keyOf(ctx.namespace, name), {
    preconditions,
    dryRun,
    suggestion: entry,
    validate: async (present) => {
      if (present.revision === entry.revision) return;
      // The object changed since the decision: finalizers may have been added.
      if ((!written && !again) || isHeld(present.object())) throw changedMeanwhile;
      await validateAdmission?.(present.object());
    },
  });
}

function decide(
  parts: RemoveParts,
  ctx: StrategyContext,
  current: KubeObject,
  deletion: Deletion,
  options: DeleteOptions,
): Decision {
  const begun = parts.strategy.beginDeletion?.(current, ctx);
  if (deletion.type === "pending" || begun === "pending") return { stays: true, object: undefined };
  const object = withFinalizers(parts, ctx, begun ?? (deletion.type === "graceful" ? deletion.object : current), options);
  if (begun !== undefined) return { stays: true, object };
  if (deletion.type === "graceful") return { stays: isHeld(object) || deletion.graceSeconds > 0, object };
  return isHeld(object) ? { stays: true, object: markAsDeleting(object, ctx.now()) } : { stays: false, object: undefined };
}

function withFinalizers(
  { strategy, garbageCollection }: RemoveParts,
  ctx: StrategyContext,
  object: KubeObject,
  options: DeleteOptions,
): KubeObject {
  if (!garbageCollection) return object;
  const present = object.metadata.finalizers;
  const finalizers = finalizersForDeletion(strategy, ctx, object, options);
  if (finalizers === present || (finalizers.length === 0 && !present?.length)) return object;
  return { ...object, metadata: { ...object.metadata, finalizers: [...finalizers] } };
}

function isHeld({ metadata }: KubeObject): boolean {
  return (metadata.finalizers?.length ?? 0) > 0;
}

/** Thrown inside storage callbacks to stop a write; neither escapes this module. */
const nothingToWrite = new Error("nothing is to be written");
const changedMeanwhile = new Error("the object changed since its deletion was decided");
