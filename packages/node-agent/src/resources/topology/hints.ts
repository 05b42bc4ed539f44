/**
 * From which NUMA nodes something could be given. Without `nodes` it does not matter which; `preferred` says that no
 * hint of fewer nodes would do. `nodes` are in ascending order.
 */
export interface Hint {
  nodes?: readonly number[] | undefined;
  preferred: boolean;
}

/** Hints by resource; no entry when that does not matter, an empty list when there is no way to give it. */
export type Hints = ReadonlyMap<string, readonly Hint[] | undefined>;

/** Every choice of at least one of the nodes, by number of nodes. */
export function choicesOf(nodes: readonly number[]): number[][] {
  const choices: number[][] = [];
  for (let mask = 1; mask < 2 ** nodes.length; mask++) choices.push(nodes.filter((_, i) => (mask & (1 << i)) !== 0));
  return choices.sort(narrowerFirst);
}

/** Fewer nodes before more; of as many, those with the lower numbers. */
export function narrowerFirst(a: readonly number[], b: readonly number[]): number {
  return a.length - b.length || maskOf(a) - maskOf(b);
}

const maskOf = (nodes: readonly number[]): number => nodes.reduce((mask, node) => mask + 2 ** node, 0);

/**
 * Pure: the best hint that all resources agree on: one hint of each, what is common to their nodes, preferred if every
 * one of them is. @param all hints of each resource; what does not matter is left out
 * @returns all nodes, not preferred, when they agree on none
 * Source: pkg/kubelet/cm/topologymanager/policy.go mergeFilteredHints
 */
export function mergeHints(machine: readonly number[], all: readonly (readonly Hint[])[]): Required<Hint> {
  // Merging is the same in any order, so resources are taken one by one: what they agree on so far stays a short list.
  let merged = new Map<string, Required<Hint>>([["", { nodes: [...machine], preferred: true }]]);
  for (const hints of all) {
    const next = new Map<string, Required<Hint>>();
    for (const one of merged.values()) {
      for (const hint of hints) {
        const nodes = hint.nodes === undefined ? one.nodes : one.nodes.filter((node) => hint.nodes?.includes(node));
        const preferred = one.preferred && hint.preferred;
        if (nodes.length > 0) next.set(`${preferred} ${nodes}`, { nodes, preferred });
      }
    }
    merged = next;
  }
  let best: Required<Hint> = { nodes: [...machine], preferred: false };
  for (const hint of merged.values()) {
    if (hint.preferred !== best.preferred) best = hint.preferred ? hint : best;
    else if (narrowerFirst(hint.nodes, best.nodes) < 0) best = hint;
  }
  return best as Required<Hint>;
}
