import type { AnyContainer, NodePod } from "../../pods/pod.ts";
import { type Hint, type Hints, mergeHints } from "./hints.ts";

export type TopologyPolicy = "none" | "best-effort" | "restricted" | "single-numa-node";
export type TopologyScope = "container" | "pod";

/** One of the managers whose resources have a place on the machine. */
export interface HintProvider {
  hints(pod: NodePod, container: AnyContainer): Hints;
  podHints(pod: NodePod): Hints;
}

export interface TopologyManager {
  /**
   * Decides where the resources of each container shall be.
   * @param allocate called for each container in the order they start, once it is decided for it
   * @throws TopologyAffinityError when the policy does not allow what is left
   */
  place(pod: NodePod, allocate: (container: AnyContainer, hint: Hint) => Promise<void>): Promise<void>;
}

export class TopologyAffinityError extends Error {
  readonly reason = "TopologyAffinityError";
  constructor() {
    super("Resources cannot be allocated with Topology locality");
  }
}

/** Choices of nodes are tried one by one, and of more nodes there are too many. */
const mostNumaNodes = 8;

/** Source: pkg/kubelet/cm/topologymanager */
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

/** Pure. Source: policy_none.go, policy_best_effort.go, policy_restricted.go, policy_single_numa_node.go */
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
  // All nodes are no place at all: nothing that asks for a node shall be tied to every one of them.
  const anywhere = policy === "single-numa-node" && best.nodes.length === numaNodes.length;
  return {
    hint: anywhere ? { preferred: best.preferred } : best,
    admit: policy === "best-effort" || best.preferred,
  };
}

/** What does not matter goes with everything; what cannot be given with nothing that is preferred. */
function listOf(hints: readonly Hint[] | undefined): readonly Hint[] {
  if (hints === undefined) return [{ preferred: true }];
  return hints.length === 0 ? [{ preferred: false }] : hints;
}
