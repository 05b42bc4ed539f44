import type { PluginArgs } from "../config/plugin-args.ts";
import { aTestNode, aTestPod, newTestCluster } from "./test-cluster.ts";

type Amounts = Readonly<Record<string, string>>;

/** Amounts of resources: what the node has, what a pod on it requests, what the new pod requests. */
export interface ScoredAmounts {
  readonly node?: Amounts;
  readonly taken?: Amounts;
  readonly wanted?: Amounts;
  readonly args?: Partial<PluginArgs>;
}

/** The score that a plugin gives to a node with these amounts. Without others, it has 4 cpus and 8 GiB of memory. */
export function scoreOf(plugin: string, { node = {}, taken = {}, wanted = {}, args = {} }: ScoredAmounts): number | undefined {
  const container = (requests: Amounts) => ({ containers: [{ name: "c", image: "i", resources: { requests } }] });
  const made = aTestNode("a");
  const allocatable = { ...made.status?.allocatable, ...node };
  const cluster = newTestCluster({
    nodes: [{ ...made, status: { ...made.status, allocatable } }],
    pods: [aTestPod("there", { on: "a", spec: container(taken) })],
    args,
  });
  return cluster.scores(plugin, aTestPod("new", { spec: container(wanted) }))["a"];
}

export const weighted = (...names: string[]) => names.map((name) => ({ name, weight: 1 }));
