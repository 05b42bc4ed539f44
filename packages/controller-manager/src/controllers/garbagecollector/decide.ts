import { foregroundFinalizer, orphanFinalizer } from "@coxswain/apimachinery/meta/finalizers";
import type { ObjectMeta, OwnerReference } from "@coxswain/apimachinery/meta/types";
import type { GraphNode } from "./graph.ts";

/** What the server says of an owner. */
export type OwnerState = "solid" | "absent" | "waiting-for-dependents";

/** What to do with an object that has owners. */
export type Verdict =
  | { readonly do: "keep" }
  /** Some owners are gone or going: only the others still own it. */
  | { readonly do: "drop-owners"; readonly owners: readonly OwnerReference[] }
  | { readonly do: "delete"; readonly policy: "Orphan" | "Foreground" | "Background"; readonly unblock: boolean };

/**
 * Pure: an object lives as long as one owner does. When the last one goes in the foreground the object goes so too, if
 * it has dependents of its own; if one of those is going in the foreground already, a circle is broken by not blocking.
 * Source: pkg/controller/garbagecollector/garbagecollector.go attemptToDeleteItem
 */
export function decide(node: GraphNode, latest: ObjectMeta, owners: readonly (readonly [OwnerReference, OwnerState])[]): Verdict {
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
