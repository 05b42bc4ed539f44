import { conflict } from "@coxswain/apimachinery/objects/errors/status-error";
import { formatTime, parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { DeleteOptions, KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { ResourceDefinition } from "./resource.ts";
import type { Strategy, StrategyContext } from "./strategy.ts";

/** Effect of a delete request on the current state of an object. */
export type Deletion =
  /** No grace period: remove the object, or mark it when it has finalizers. */
  | { type: "now" }
  /** Already being deleted, and the request does not shorten the grace period: nothing to do. */
  | { type: "pending" }
  /** `object` is a copy with deletionTimestamp, kept for `graceSeconds`; 0: marked, then removed immediately. */
  | { type: "graceful"; object: KubeObject; graceSeconds: number };

/**
 * Checks preconditions and decides between immediate and graceful deletion.
 * Source: k8s.io/apiserver pkg/registry/rest/delete.go BeforeDelete
 * @throws Conflict when preconditions fail
 */
export function beforeDelete(
  definition: ResourceDefinition,
  strategy: Strategy,
  ctx: StrategyContext,
  current: KubeObject,
  options: DeleteOptions,
): Deletion {
  const { metadata } = current;
  checkPreconditions(definition, current, options);
  if (strategy.gracePeriod === undefined) return { type: "now" };

  if (metadata.deletionTimestamp) {
    const left = metadata.deletionGracePeriodSeconds ?? 0;
    // 0: an earlier request marked the object but failed to remove it; this request completes the deletion.
    if (left === 0) return { type: "now" };
    const wanted = options.gracePeriodSeconds;
    if (wanted === undefined || wanted >= left) return { type: "pending" };
    // A grace period can only be shortened; it counts from the start of the deletion.
    const began = (parseTime(metadata.deletionTimestamp) ?? ctx.now()) - durationMs(left);
    return marked(current, began + durationMs(wanted), wanted, false);
  }

  const graceSeconds = strategy.gracePeriod(current, options.gracePeriodSeconds);
  if (graceSeconds === undefined) return { type: "now" };
  return marked(current, ctx.now() + durationMs(graceSeconds), graceSeconds, true);
}

/**
 * gracePeriodSeconds is a 64-bit integer (decoded as a bigint when it is large). Upstream's durations are 64-bit nanoseconds
 * and wrap around; the same wrap-around keeps the result within the range of a timestamp.
 */
function durationMs(seconds: number | bigint): number {
  return Number(BigInt.asIntN(64, BigInt(seconds) * 1_000_000_000n)) / 1e6;
}

/** Marks an object without graceful deletion that has finalizers. @returns a copy. Source: store.go markAsDeleting */
export function markAsDeleting(current: KubeObject, now: number): KubeObject {
  const { metadata } = current;
  const at = metadata.deletionTimestamp ? parseTime(metadata.deletionTimestamp) : undefined;
  const bump = metadata.deletionGracePeriodSeconds === undefined;
  return marked(current, at === undefined || at > now ? now : at, 0, bump).object;
}

function marked(current: KubeObject, at: number, graceSeconds: number, bumpGeneration: boolean) {
  const metadata = { ...current.metadata, deletionTimestamp: formatTime(at), deletionGracePeriodSeconds: graceSeconds };
  // Controllers that compare observedGeneration must notice the deletion.
  if (bumpGeneration && (metadata.generation ?? 0) > 0) metadata.generation = (metadata.generation ?? 0) + 1;
  return { type: "graceful" as const, object: { ...current, metadata }, graceSeconds };
}

function checkPreconditions(definition: ResourceDefinition, current: KubeObject, { preconditions }: DeleteOptions): void {
  if (preconditions === undefined) return;
  const { uid = "", resourceVersion = "", name = "" } = current.metadata;
  // Upstream names the kind instead of the resource in this error.
  const subject = { group: definition.group, resource: definition.kind };
  if (preconditions.uid !== undefined && preconditions.uid !== uid) {
    throw conflict(
      subject,
      name,
      `the UID in the precondition (${preconditions.uid}) does not match the UID in record (${uid}). The object might have been deleted and then recreated`,
    );
  }
  if (preconditions.resourceVersion !== undefined && preconditions.resourceVersion !== resourceVersion) {
    throw conflict(
      subject,
      name,
      `the ResourceVersion in the precondition (${preconditions.resourceVersion}) does not match the ResourceVersion in record (${resourceVersion}). The object might have been modified`,
    );
  }
}
