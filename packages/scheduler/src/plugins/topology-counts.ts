import type { TopologySpreadConstraint } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import { labelOf } from "@coxswain/apimachinery/scheduling/labels";
import type { NodeInfo } from "../cache/node-info.ts";

/** A constraint with its selector parsed. */
export interface SpreadConstraint {
  readonly maxSkew: number;
  readonly topologyKey: string;
  readonly selector: LabelSelector;
  /** Canonical text of the selector; equal for equal selectors, across cycles. */
  readonly text: string;
}

type Labels = Readonly<Record<string, string>>;

/** Counts by topology key and value. */
export class TopologyCounts {
  readonly #byKey = new Map<string, Map<string, number>>();

  /** @returns a copy whose changes do not affect the original, for the simulation of a preemption */
  static copyOf(counts: TopologyCounts): TopologyCounts {
    const copy = new TopologyCounts();
    for (const [key, values] of counts.#byKey) copy.#byKey.set(key, new Map(values));
    return copy;
  }

  /** Number of Pods in a domain; undefined without an entry for it. */
  get(key: string, value: string): number | undefined {
    return this.#byKey.get(key)?.get(value);
  }

  /** @param forgetZero removes the entry when its count becomes 0 */
  add(key: string, value: string, count: number, forgetZero = false): void {
    const values = this.#byKey.get(key) ?? new Map<string, number>();
    const sum = (values.get(value) ?? 0) + count;
    if (sum !== 0 || !forgetZero) this.#byKey.set(key, values.set(value, sum));
    else if (values.delete(value) && values.size === 0) this.#byKey.delete(key);
  }

  /** Smallest count of a key among the values that `domains` has, 0 for one without an entry here; Infinity when it has none. */
  leastOf(key: string, domains: TopologyCounts): number {
    const counts = this.#byKey.get(key);
    let least = Number.POSITIVE_INFINITY;
    for (const value of domains.#byKey.get(key)?.keys() ?? []) least = Math.min(least, counts?.get(value) ?? 0);
    return least;
  }

  /** True when a domain that the labels belong to has pods. */
  hasAnyAt(labels: Labels): boolean {
    for (const [key, values] of this.#byKey) {
      const value = labelOf(labels, key);
      if (value !== undefined && (values.get(value) ?? 0) > 0) return true;
    }
    return false;
  }

  /** The sum of the counts of the domains that the labels belong to. */
  sumAt(labels: Labels): number {
    let sum = 0;
    for (const [key, values] of this.#byKey) {
      const value = labelOf(labels, key);
      if (value !== undefined) sum += values.get(value) ?? 0;
    }
    return sum;
  }

  get empty(): boolean {
    return this.#byKey.size === 0;
  }
}

/** Constraints with the given action, selectors parsed. @throws BadRequest for an invalid selector */
export function parseConstraints(
  constraints: readonly TopologySpreadConstraint[],
  action: TopologySpreadConstraint["whenUnsatisfiable"],
): SpreadConstraint[] {
  return constraints
    .filter(({ whenUnsatisfiable }) => whenUnsatisfiable === action)
    .map(({ maxSkew, topologyKey, labelSelector }) => ({
      maxSkew,
      topologyKey,
      ...parsed(LabelSelector.ofCached(labelSelector)),
    }));
}

/** True when the labels include the topology keys of all constraints. */
export const hasAllKeys = (labels: Labels, constraints: readonly SpreadConstraint[]): boolean =>
  constraints.every(({ topologyKey }) => labelOf(labels, topologyKey) !== undefined);

/** The fields of a SpreadConstraint that are derived from its selector. */
export const parsed = (selector: LabelSelector): Pick<SpreadConstraint, "selector" | "text"> => ({
  selector,
  // The text of `nothing` is empty, like that of the selector that matches everything.
  text: selector === LabelSelector.nothing ? "nothing" : `=${selector.toString()}`,
});

/** A pure cache of the last count of each node. Pods of one set are usually scheduled in a row, and most nodes do not change in between. */
const lastCounts = new WeakMap<NodeInfo, { version: number; namespace: string; text: string; count: number }>();

/** `countMatching`, cached until the pods of the node change. */
export function countOf(info: NodeInfo, { selector, text }: SpreadConstraint, namespace = ""): number {
  const last = lastCounts.get(info);
  if (last?.version === info.version && last.text === text && last.namespace === namespace) return last.count;
  const count = countMatching(info, selector, namespace);
  lastCounts.set(info, { version: info.version, namespace, text, count });
  return count;
}

/** Number of matching pods of the namespace on the node, without terminating ones. */
export function countMatching({ pods }: NodeInfo, selector: LabelSelector, namespace = ""): number {
  let count = 0;
  for (const { pod } of pods.values()) {
    const { metadata } = pod;
    if (!metadata.deletionTimestamp && (metadata.namespace ?? "") === namespace && selector.matches(metadata.labels)) count++;
  }
  return count;
}
