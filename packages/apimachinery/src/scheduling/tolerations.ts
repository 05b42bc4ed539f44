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

/** The tolerations of a pod, which are compared with the taints of every node: many are indexed by the first comparison. */
export class Tolerations {
  readonly #list: readonly Toleration[];
  /** Positions of the first tolerations of each kind. */
  #index: ReadonlyMap<string, number> | undefined;

  /** @param list never changed afterwards */
  constructor(list: readonly Toleration[] = []) {
    this.#list = list;
  }

  /** Whether one of the tolerations matches the taint. */
  tolerate(taint: Taint): boolean {
    return this.firstFor(taint) !== undefined;
  }

  /** The first toleration that matches the taint. */
  firstFor(taint: Taint): Toleration | undefined {
    if (this.#list.length < few) return this.#list.find((toleration) => tolerates(toleration, taint));
    this.#index ??= newIndex(this.#list);
    const { effect, key, value = "" } = taint;
    let first = this.#list.length;
    for (const wanted of key === "" ? [""] : [key, ""]) {
      for (const of of effect === "" ? [""] : [effect, ""]) {
        first = Math.min(
          first,
          this.#index.get(indexKey(wanted, of)) ?? first,
          this.#index.get(indexKey(wanted, of, value)) ?? first,
        );
      }
    }
    return this.#list[first];
  }

  /** The first taint with one of the effects that no toleration matches. */
  firstUntolerated(taints: readonly Taint[], effects: readonly string[]): Taint | undefined {
    return taints.find((taint) => effects.includes(taint.effect) && !this.tolerate(taint));
  }
}

function newIndex(list: readonly Toleration[]): Map<string, number> {
  const index = new Map<string, number>();
  for (const [at, toleration] of list.entries()) for (const key of keyOf(toleration)) index.getOrInsert(key, at);
  return index;
}

/** @param value undefined: all values */
const indexKey = (key: string, effect: string, value?: string): string => JSON.stringify([key, effect, value]);

/** Nothing for an unknown operator, which tolerates no taint. */
function keyOf({ key, operator, value, effect }: Toleration): string[] {
  if (operator === "Exists") return [indexKey(key ?? "", effect ?? "")];
  if (operator && operator !== "Equal") return [];
  return [indexKey(key ?? "", effect ?? "", value ?? "")];
}
