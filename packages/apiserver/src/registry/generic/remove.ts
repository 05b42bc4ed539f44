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

/** Whether the object is kept, and the state to write first; undefined: nothing to write. */
interface Decision {
  readonly stays: boolean;
  readonly object: KubeObject | undefined;
}

/** The delete operation of a generic store. */
export function newRemove({ definition, strategy, storage, keyOf, garbageCollection, expiry }: RemoveParts): Remove {
  /** @param again true on the retry after a concurrent change: a cached state is no longer trusted */
  async function remove(
    ctx: StrategyContext,
    name: string,
    options: DeleteOptions,
    validateAdmission: ((old: KubeObject) => Promise<void>) | undefined,
    again: boolean,
  ): Promise<{ entry: Entry; deleted: boolean }> {
    const key = keyOf(ctx.namespace, name);
    const preconditions = { ...options.preconditions };
    const dryRun = ctx.dryRun || isDryRun(options);
    let stays = true;
    let seen: Entry | undefined;

    // A single guaranteedUpdate decides between marking (and keeping or removing it right after), removing and no change.
    const mark = async (stored: Entry | undefined): Promise<KubeObject> => {
      seen = stored!;
      const current = seen.object();
      // Also checks the preconditions; the write applies to exactly this revision.
      const deletion = beforeDelete(definition, strategy, ctx, current, options);
      await validateAdmission?.(current);
      const decision = decide(ctx, current, deletion, options);
      stays = decision.stays;
      if (decision.object === undefined) throw nothingToWrite;
      return decision.object;
    };

    let marked: Entry | undefined;
    try {
      marked = await storage.guaranteedUpdate(key, mark, {
        ...expiry,
        dryRun,
        // A decision on a cached state is final: the delete below re-checks when the revision differs.
        settles: (thrown) => thrown === nothingToWrite && !stays && !dryRun && !again,
      });
    } catch (err) {
      if (err !== nothingToWrite) throw err;
    }
    if (stays) return { entry: (marked ?? seen)!, deleted: false };
    if (dryRun && marked !== undefined) return { entry: marked, deleted: true };

    if (marked !== undefined && preconditions.resourceVersion !== undefined) {
      preconditions.resourceVersion = String(marked.revision); // marking changed the resourceVersion
    }
    const decided = marked ?? seen;
    let entry: Entry;
    try {
      entry = await storage.delete(key, {
        preconditions,
        dryRun,
        ...(decided !== undefined && { suggestion: decided }),
        validate: async (present) => {
          // The object changed since the decision: finalizers may have been added.
          if (present.revision !== decided?.revision) await recheck(present);
        },
      });
    } catch (err) {
      if (err === changedMeanwhile) return remove(ctx, name, options, validateAdmission, true);
      // Marked by this request and then removed by another client (a kubelet): the deletion has succeeded.
      if (!isNotFound(err) || marked === undefined) throw err;
      entry = marked;
    }
    if (!dryRun) await strategy.afterDelete?.(entry.object(), ctx);
    return { entry, deleted: true };

    async function recheck(present: Entry): Promise<void> {
      if (marked === undefined && !again) throw changedMeanwhile;
      if (isHeld(present.object())) throw changedMeanwhile;
      await validateAdmission?.(present.object());
    }
  }

  function decide(ctx: StrategyContext, current: KubeObject, deletion: Deletion, options: DeleteOptions): Decision {
    const begun = strategy.beginDeletion?.(current, ctx);
    if (deletion.type === "pending" || begun === "pending") return { stays: true, object: undefined };
    const object = withFinalizers(ctx, begun ?? (deletion.type === "graceful" ? deletion.object : current), options);
    if (begun !== undefined) return { stays: true, object };
    if (deletion.type === "graceful") return { stays: isHeld(object) || deletion.graceSeconds > 0, object };
    return isHeld(object) ? { stays: true, object: markAsDeleting(object, ctx.now()) } : { stays: false, object: undefined };
  }

  function withFinalizers(ctx: StrategyContext, object: KubeObject, options: DeleteOptions): KubeObject {
    if (!garbageCollection) return object;
    const present = object.metadata.finalizers;
    const finalizers = finalizersForDeletion(strategy, ctx, object, options);
    if (finalizers === present || (finalizers.length === 0 && !present?.length)) return object;
    return { ...object, metadata: { ...object.metadata, finalizers: [...finalizers] } };
  }

  return (ctx, name, options, validateAdmission) => remove(ctx, name, options, validateAdmission, false);
}

function isHeld({ metadata }: KubeObject): boolean {
  return (metadata.finalizers?.length ?? 0) > 0;
}

/** Thrown inside storage callbacks to stop a write; neither escapes this module. */
const nothingToWrite = new Error("nothing is to be written");
const changedMeanwhile = new Error("the object changed since its deletion was decided");
