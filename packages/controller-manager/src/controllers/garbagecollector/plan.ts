import { foregroundFinalizer, orphanFinalizer } from "@coxswain/apimachinery/objects/meta/finalizers";
import type { ObjectMeta, OwnerReference } from "@coxswain/apimachinery/objects/meta/types";
import type { GraphNode } from "./graph.ts";

/** State of an owner on the API server. */
export type OwnerState = "solid" | "absent" | "waiting-for-dependents";

/** Action for an object with owners. */
type Decision =
  | { readonly do: "keep" }
  /** Some owners are deleted or being deleted; only `owners` remain. */
  | { readonly do: "drop-owners"; readonly owners: readonly OwnerReference[] }
  | { readonly do: "delete"; readonly policy: "Orphan" | "Foreground" | "Background"; readonly unblock: boolean };

/**
 * Pure: an object is kept while one owner exists. When its last owners wait in foreground deletion and the object has
 * dependents itself, it is deleted in the foreground too; if one of its dependents is in foreground deletion already,
 * the cycle is broken by removing blockOwnerDeletion.
 * Source: pkg/controller/garbagecollector/garbagecollector.go attemptToDeleteItem
 */
export function decideDeletion(
  node: GraphNode,
  latest: ObjectMeta,
  owners: readonly (readonly [OwnerReference, OwnerState])[],
): Decision {
  if (owners.length === 0) return { do: "keep" };
  const solid = owners.filter(([, state]) => state === "solid").map(([owner]) => owner);
  if (solid.length > 0) return solid.length === owners.length ? { do: "keep" } : { do: "drop-owners", owners: solid };
  if (owners.some(([, state]) => state === "waiting-for-dependents") && node.dependents.size > 0) {
    const circular = [...node.dependents].some(({ deletingDependents }) => deletingDependents);
    return { do: "delete", policy: "Foreground", unblock: circular };
  }
  const finalizers = latest.finalizers ?? [];
  const policy = finalizers.includes(orphanFinalizer)
    ? "Orphan"
    : finalizers.includes(foregroundFinalizer)
      ? "Foreground"
      : "Background";
  return { do: "delete", policy, unblock: false };
}
