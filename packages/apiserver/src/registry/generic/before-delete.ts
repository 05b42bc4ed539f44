import { conflict } from "@coxswain/apimachinery/errors/status-error";
import { formatTime, parseTime } from "@coxswain/apimachinery/meta/time";
import type { DeleteOptions, KubeObject } from "@coxswain/apimachinery/meta/types";
import type { ResourceDefinition } from "./resource.ts";
import type { Strategy, StrategyContext } from "./strategy.ts";

/** What a request to delete means for an object as it stands. */
export type Deletion =
  /** No grace: remove it, or mark it when finalizers hold it. */
  | { type: "now" }
  /** Already being deleted with a grace period that this request does not shorten: nothing to do. */
  | { type: "pending" }
  /** Set the deletion marks of `object` (a copy); it stays for `graceSeconds`. 0: marked, then removed at once. */
  | { type: "graceful"; object: KubeObject; graceSeconds: number };

/**
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
    // 0: it was to be removed at once and the removal failed after the mark; this request makes up for it.
    if (left === 0) return { type: "now" };
    const wanted = options.gracePeriodSeconds;
    if (wanted === undefined || wanted >= left) return { type: "pending" };
    // Only a shorter period is taken; it counts from when the deletion began.
    const began = (parseTime(metadata.deletionTimestamp) ?? ctx.now) - durationMs(left);
    return marked(current, began + durationMs(wanted), wanted, false);
  }

  const graceSeconds = strategy.gracePeriod(current, options.gracePeriodSeconds);
  if (graceSeconds === undefined) return { type: "now" };
  return marked(current, ctx.now + durationMs(graceSeconds), graceSeconds, true);
}

/**
 * Users may ask for all of 64 bits of seconds (which are read as a bigint). Upstream's durations are 64 bits of
 * nanoseconds, and wrap around: a time that nobody could write never comes of it.
 */
function durationMs(seconds: number | bigint): number {
  return Number(BigInt.asIntN(64, BigInt(seconds) * 1_000_000_000n)) / 1e6;
}

/** The marks of an object without graceful deletion that finalizers hold. Source: store.go markAsDeleting */
export function markAsDeleting(current: KubeObject, now: number): KubeObject {
  const { metadata } = current;
  const at = metadata.deletionTimestamp ? parseTime(metadata.deletionTimestamp) : undefined;
  const bump = metadata.deletionGracePeriodSeconds === undefined;
  return marked(current, at === undefined || at > now ? now : at, 0, bump).object;
}

function marked(current: KubeObject, at: number, graceSeconds: number, bumpGeneration: boolean) {
  const metadata = { ...current.metadata, deletionTimestamp: formatTime(at), deletionGracePeriodSeconds: graceSeconds };
  // Its meaning changed for controllers, so those that count generations must look again.
  if (bumpGeneration && (metadata.generation ?? 0) > 0) metadata.generation = (metadata.generation ?? 0) + 1;
  return { type: "graceful" as const, object: { ...current, metadata }, graceSeconds };
}

function checkPreconditions(definition: ResourceDefinition, current: KubeObject, { preconditions }: DeleteOptions): void {
  if (preconditions === undefined) return;
  const { uid = "", resourceVersion = "", name = "" } = current.metadata;
  // Upstream names the kind here where others name the resource.
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
