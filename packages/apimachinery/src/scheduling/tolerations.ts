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

/** The same text for tolerations that are semantically equal, for sets of them. */
export function tolerationText({ key, operator, value, effect, tolerationSeconds }: Toleration): string {
  return JSON.stringify([key, operator, value, effect, `${tolerationSeconds ?? ""}`]); // a bigint beyond 2^53
}

/** Fewer tolerations are compared one by one. */
const few = 16;

/** Keys of `tolerates` for lists of many tolerations, which are compared with the taints of every node. */
const indexes = new WeakMap<readonly Toleration[], ReadonlySet<string>>();

/** Whether one of the tolerations tolerates the taint; in constant time after the first call. @param tolerations never changed afterwards */
export function isTolerated(taint: Taint, tolerations: readonly Toleration[] = []): boolean {
  if (tolerations.length < few) return tolerations.some((toleration) => tolerates(toleration, taint));
  const index = indexes.get(tolerations) ?? new Set(tolerations.flatMap(keyOf));
  indexes.set(tolerations, index);
  const { effect, key, value = "" } = taint;
  for (const wanted of key === "" ? [""] : [key, ""])
    for (const of of effect === "" ? [""] : [effect, ""])
      if (index.has(indexKey(wanted, of)) || index.has(indexKey(wanted, of, value))) return true;
  return false;
}

/** @param value undefined: all values */
const indexKey = (key: string, effect: string, value?: string): string => JSON.stringify([key, effect, value]);

/** Nothing for an unknown operator, which tolerates no taint. */
function keyOf({ key, operator, value, effect }: Toleration): string[] {
  if (operator === "Exists") return [indexKey(key ?? "", effect ?? "")];
  if (operator && operator !== "Equal") return [];
  return [indexKey(key ?? "", effect ?? "", value ?? "")];
}

/** The first taint with one of the effects that no toleration matches. */
export function untolerated(
  taints: readonly Taint[],
  tolerations: readonly Toleration[],
  effects: readonly string[],
): Taint | undefined {
  return taints.find((taint) => effects.includes(taint.effect) && !isTolerated(taint, tolerations));
}
