/**
 * NUMA nodes that can provide a resource. `nodes` is in ascending order; undefined means no preference. `preferred` is true
 * when no smaller set of nodes could satisfy the request.
 */
export interface Hint {
  nodes?: readonly number[] | undefined;
  preferred: boolean;
}

/** Hints by resource: undefined for no preference, an empty list when the request cannot be satisfied. */
export type Hints = ReadonlyMap<string, readonly Hint[] | undefined>;

/** All non-empty subsets of the nodes, smallest first. */
export function choicesOf(nodes: readonly number[]): number[][] {
  const choices: number[][] = [];
  for (let mask = 1; mask < 2 ** nodes.length; mask++) choices.push(nodes.filter((_, i) => (mask & (1 << i)) !== 0));
  return choices.sort(narrowerFirst);
}

/** Sort order: fewer nodes first; among equals, lower node numbers first. */
export function narrowerFirst(a: readonly number[], b: readonly number[]): number {
  return a.length - b.length || maskOf(a) - maskOf(b);
}

const maskOf = (nodes: readonly number[]): number => nodes.reduce((mask, node) => mask + 2 ** node, 0);

/**
 * Pure: the best combination of one hint per resource. Its nodes are the intersection of the hints' nodes; it is preferred
 * when all of the hints are.
 * @param all hints of each resource
 * @returns all nodes, not preferred, when no combination has a common node
 * Source: pkg/kubelet/cm/topologymanager/policy.go mergeFilteredHints
 */
export function mergeHints(machine: readonly number[], all: readonly (readonly Hint[])[]): Required<Hint> {
  // Merging is associative: going resource by resource, with duplicates removed, avoids the full cross product.
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
  return best;
}
