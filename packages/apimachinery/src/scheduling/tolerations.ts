import type { Taint, Toleration } from "../objects/schema/kinds/core/v1.ts";

/**
 * True when the toleration matches the taint. An empty effect or key matches every one.
 * Source: k8s.io/api core/v1 toleration.go ToleratesTaint
 */
export function tolerates(toleration: Toleration, taint: Taint): boolean {
  if (toleration.effect && toleration.effect !== taint.effect) return false;
  if (toleration.key && toleration.key !== taint.key) return false;
  if (toleration.operator === "Exists") return true;
  return (
    (toleration.operator === undefined || toleration.operator === "" || toleration.operator === "Equal") &&
    (toleration.value ?? "") === (taint.value ?? "")
  );
}

/** The first taint with one of the effects that no toleration matches. */
export function untolerated(
  taints: readonly Taint[],
  tolerations: readonly Toleration[],
  effects: readonly string[],
): Taint | undefined {
  return taints.find(
    (taint) => effects.includes(taint.effect) && !tolerations.some((toleration) => tolerates(toleration, taint)),
  );
}
