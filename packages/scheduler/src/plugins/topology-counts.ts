import { labelOf } from "@coxswain/apimachinery/scheduling/labels";
import type { TopologySpreadConstraint } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { LabelSelector } from "@coxswain/apimachinery/selectors/label-selector";
import type { NodeInfo } from "../cache/node-info.ts";

/** A constraint with its selector parsed. */
export interface SpreadConstraint {
  readonly maxSkew: number;
  readonly topologyKey: string;
  readonly selector: LabelSelector;
  /** The same for the same selector of another cycle. */
  readonly text: string;
}

type Labels = Readonly<Record<string, string>>;

/** Numbers by topology key and value. */
export class TopologyCounts {
  readonly #byKey = new Map<string, Map<string, number>>();
  /** Every node asks for it; until a count of the key changes it stays. */
  readonly #least = new Map<string, number>();

  static copyOf(counts: TopologyCounts): TopologyCounts {
    const copy = new TopologyCounts();
    for (const [key, values] of counts.#byKey) copy.#byKey.set(key, new Map(values));
    return copy;
  }

  get(key: string, value: string): number | undefined {
    return this.#byKey.get(key)?.get(value);
  }

  /** Gone when it comes to nothing, if `forgetZero`. */
  add(key: string, value: string, count: number, forgetZero = false): void {
    this.#least.delete(key);
    const values = this.#byKey.get(key) ?? new Map<string, number>();
    const sum = (values.get(value) ?? 0) + count;
    if (sum !== 0 || !forgetZero) this.#byKey.set(key, values.set(value, sum));
    else if (values.delete(value) && values.size === 0) this.#byKey.delete(key);
  }

  /** Of the values of a key; infinite when there is none. */
  least(key: string): number {
    const known = this.#least.get(key);
    if (known !== undefined) return known;
    let least = Number.POSITIVE_INFINITY;
    for (const count of this.#byKey.get(key)?.values() ?? []) if (count < least) least = count;
    this.#least.set(key, least);
    return least;
  }

  keys(): IterableIterator<string> {
    return this.#byKey.keys();
  }

  get empty(): boolean {
    return this.#byKey.size === 0;
  }
}

/** @throws BadRequest for a selector that cannot be read */
export function parseConstraints(
  constraints: readonly TopologySpreadConstraint[],
  action: TopologySpreadConstraint["whenUnsatisfiable"],
): SpreadConstraint[] {
  return constraints
    .filter(({ whenUnsatisfiable }) => whenUnsatisfiable === action)
    .map(({ maxSkew, topologyKey, labelSelector }) => ({
      maxSkew,
      topologyKey,
      ...parsed(LabelSelector.fromObject(labelSelector)),
    }));
}

export const hasAllKeys = (labels: Labels, constraints: readonly SpreadConstraint[]): boolean =>
  constraints.every(({ topologyKey }) => labelOf(labels, topologyKey) !== undefined);

/** Both fields that a constraint has of its selector. */
export const parsed = (selector: LabelSelector): Pick<SpreadConstraint, "selector" | "text"> => ({
  selector,
  // What takes nothing reads like what takes all.
  text: selector === LabelSelector.nothing ? "nothing" : `=${selector.toString()}`,
});

/** What was counted last on each node: the pods of one set come one after the other, and most nodes did not change. */
const lastCounts = new WeakMap<NodeInfo, { version: number; namespace: string; text: string; count: number }>();

/** `countMatching`, remembered. */
export function countOf(info: NodeInfo, { selector, text }: SpreadConstraint, namespace = ""): number {
  const last = lastCounts.get(info);
  if (last?.version === info.version && last.text === text && last.namespace === namespace) return last.count;
  const count = countMatching(info, selector, namespace);
  lastCounts.set(info, { version: info.version, namespace, text, count });
  return count;
}

/** Pods of the namespace on the node that the selector takes, less those that are on their way out. */
export function countMatching({ pods }: NodeInfo, selector: LabelSelector, namespace = ""): number {
  let count = 0;
  for (const { pod } of pods.values()) {
    const { metadata } = pod;
    if (!metadata.deletionTimestamp && (metadata.namespace ?? "") === namespace && selector.matches(metadata.labels)) count++;
  }
  return count;
}
