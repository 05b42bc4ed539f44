import { foregroundFinalizer, orphanFinalizer } from "@coxswain/apimachinery/objects/meta/finalizers";
import type { DeleteOptions, KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Strategy, StrategyContext } from "./strategy.ts";

/**
 * Finalizers of an object after a delete request with these options; returns the same list when nothing changes.
 * Source: k8s.io/apiserver pkg/registry/generic/registry/store.go deletionFinalizersForGarbageCollection
 */
export function finalizersForDeletion(
  strategy: Strategy,
  ctx: StrategyContext,
  object: KubeObject,
  options: DeleteOptions,
): readonly string[] {
  const present = object.metadata.finalizers ?? [];
  const wanted = present.filter((finalizer) => finalizer !== orphanFinalizer && finalizer !== foregroundFinalizer);
  const policy = propagationOf(strategy, ctx, present, options);
  if (policy === "Orphan") wanted.push(orphanFinalizer);
  if (policy === "Foreground") wanted.push(foregroundFinalizer);
  const unchanged = wanted.length === present.length && new Set(wanted).isSubsetOf(new Set(present));
  return unchanged ? present : wanted;
}

/** Precedence: the request, then an existing finalizer, then the default of the resource. */
function propagationOf(
  strategy: Strategy,
  ctx: StrategyContext,
  finalizers: readonly string[],
  options: DeleteOptions,
): "Orphan" | "Foreground" | "Background" {
  const own = strategy.defaultGarbageCollection ?? "Background";
  const byDefault = typeof own === "function" ? own(ctx) : own;
  if (byDefault === "Unsupported") return "Background";
  if (options.orphanDependents !== undefined) return options.orphanDependents ? "Orphan" : "Background";
  if (options.propagationPolicy !== undefined) return options.propagationPolicy;
  if (finalizers.includes(orphanFinalizer)) return "Orphan";
  if (finalizers.includes(foregroundFinalizer)) return "Foreground";
  return byDefault;
}

/**
 * True when an update removes the last finalizer of an object whose grace period is 0: the update completes the deletion.
 * Source: store.go ShouldDeleteDuringUpdate
 */
export function deletesByUpdate(next: KubeObject, current: KubeObject): boolean {
  if ((next.metadata.finalizers?.length ?? 0) > 0 || !current.metadata.deletionTimestamp) return false;
  return (current.metadata.deletionGracePeriodSeconds ?? 0) === 0;
}
