import type { AnyContainer, NodePod } from "../../pod/pod.ts";
import { type Hint, type Hints, mergeHints } from "./hints.ts";

export type TopologyPolicy = "none" | "best-effort" | "restricted" | "single-numa-node";
export type TopologyScope = "container" | "pod";

/** A manager of resources with NUMA affinity. */
export interface HintProvider {
  hints(pod: NodePod, container: AnyContainer): Hints;
  podHints(pod: NodePod): Hints;
}

/** Applies the topology policy to the resources of a Pod. */
export interface TopologyManager {
  /**
   * Determines the NUMA affinity of each container.
   * @param allocate called for each container in start order, with the hint for it
   * @throws TopologyAffinityError when the policy rejects the Pod
   */
  place(pod: NodePod, allocate: (container: AnyContainer, hint: Hint) => Promise<void>): Promise<void>;
}

/** The policy rejects the available NUMA affinity. */
export class TopologyAffinityError extends Error {
  readonly reason = "TopologyAffinityError";
  constructor() {
    super("Resources cannot be allocated with Topology locality");
  }
}

/** All subsets of nodes are tried, so the cost grows exponentially with their number. */
const mostNumaNodes = 8;

/** @throws Error on machines with more than 8 NUMA nodes, unless the policy is `none`. Source: pkg/kubelet/cm/topologymanager */
export function newTopologyManager(options: {
  policy: TopologyPolicy;
  scope: TopologyScope;
  numaNodes: readonly number[];
  providers: readonly HintProvider[];
}): TopologyManager {
  const { policy, scope, numaNodes, providers } = options;
  if (policy !== "none" && numaNodes.length > mostNumaNodes)
    throw new Error(`unsupported on machines with more than ${mostNumaNodes} NUMA Nodes`);
  const decide = (hints: readonly Hints[]): Hint => {
    const { hint, admit } = decidePlace(policy, numaNodes, hints);
    if (!admit) throw new TopologyAffinityError();
    return hint;
  };
  return {
    async place(pod, allocate) {
      const containers = [...(pod.spec.initContainers ?? []), ...pod.spec.containers];
      const shared = policy !== "none" && scope === "pod" ? decide(providers.map((one) => one.podHints(pod))) : undefined;
      for (const container of containers) {
        if (policy === "none") await allocate(container, { preferred: false });
        else await allocate(container, shared ?? decide(providers.map((one) => one.hints(pod, container))));
      }
    },
  };
}

/**
 * Pure: merges the hints and applies the policy.
 * Source: policy_none.go, policy_best_effort.go, policy_restricted.go, policy_single_numa_node.go
 */
export function decidePlace(
  policy: TopologyPolicy,
  numaNodes: readonly number[],
  provided: readonly Hints[],
): { hint: Hint; admit: boolean } {
  if (policy === "none") return { hint: { preferred: false }, admit: true };
  let lists = provided.flatMap((hints) => [...hints.values()].map(listOf));
  if (policy === "single-numa-node") {
    lists = lists.map((list) => list.filter(({ nodes, preferred }) => preferred && (nodes === undefined || nodes.length === 1)));
  }
  const best = mergeHints(numaNodes, lists);
  // A hint of all nodes is no restriction, so no affinity is recorded for it.
  const anywhere = policy === "single-numa-node" && best.nodes.length === numaNodes.length;
  return {
    hint: anywhere ? { preferred: best.preferred } : best,
    admit: policy === "best-effort" || best.preferred,
  };
}

/** No preference is compatible with everything; an unsatisfiable request makes every merged hint not preferred. */
function listOf(hints: readonly Hint[] | undefined): readonly Hint[] {
  if (hints === undefined) return [{ preferred: true }];
  return hints.length === 0 ? [{ preferred: false }] : hints;
}
