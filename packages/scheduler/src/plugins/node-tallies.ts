import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import type { NodeInfo } from "../cache/node-info.ts";
import type { ClusterSnapshot } from "../cache/snapshot.ts";
import { TopologyCounts } from "./topology-counts.ts";

/** What a node adds to the count of a topology domain. */
export type Share = readonly [topologyKey: string, value: string, count: number];

/** Counts kept between cycles; the least recently used are dropped. */
const mostKept = 16;

/**
 * Counts over all nodes by topology domain, kept between cycles. Pods of one set are usually scheduled in a row and need the same
 * counts, while only the node changed that the last of them was assigned to.
 */
export class NodeTallies {
  readonly #kept = new Map<string, Tally>();

  /**
   * @param key says what is counted: equal keys give equal shares; undefined: the counts are not kept
   * @param nodesOf those that may have a share
   * @returns counts that change with later calls of the same key: valid for one cycle
   */
  *count(
    key: string | undefined,
    snapshot: ClusterSnapshot,
    nodesOf: () => readonly NodeInfo[],
    sharesOf: (node: NodeInfo) => Steps<readonly Share[]>,
  ): Steps<TopologyCounts> {
    const tally = (key !== undefined && this.#kept.get(key)) || new Tally();
    if (key === undefined) {
      yield* tally.update(snapshot, nodesOf, sharesOf);
      return tally.counts;
    }
    // Nobody else may use it until it is complete; it is lost when the steps are abandoned or fail.
    this.#kept.delete(key);
    yield* tally.update(snapshot, nodesOf, sharesOf);
    this.#kept.set(key, tally);
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= mostKept) break;
      this.#kept.delete(oldest);
    }
    return tally.counts;
  }
}

class Tally {
  counts = new TopologyCounts();
  #shares = new Map<NodeInfo, readonly Share[]>();
  #position: number | undefined;

  *update(
    { changes, get }: ClusterSnapshot,
    nodesOf: () => readonly NodeInfo[],
    sharesOf: (node: NodeInfo) => Steps<readonly Share[]>,
  ): Steps<void> {
    const changed = this.#position === undefined ? undefined : changes.since(this.#position);
    if (changed === undefined) {
      this.counts = new TopologyCounts();
      this.#shares = new Map();
    }
    // Read before the steps: what changes meanwhile is looked at again by the next update.
    this.#position = changes.position;
    for (const node of changed ?? nodesOf()) {
      const isPresent = get(node.name) === node;
      this.#replace(node, isPresent ? yield* sharesOf(node) : []);
    }
  }

  #replace(node: NodeInfo, shares: readonly Share[]): void {
    for (const [key, value, count] of this.#shares.get(node) ?? []) this.counts.add(key, value, -count, true);
    for (const [key, value, count] of shares) this.counts.add(key, value, count, true);
    if (shares.length > 0) this.#shares.set(node, shares);
    else this.#shares.delete(node);
  }
}
