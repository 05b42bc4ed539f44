import type { NodeInfo, PodInfo } from "./cache/node-info.ts";
import type { ClusterSnapshot } from "./cache/snapshot.ts";
import type { CycleState } from "./framework/cycle-state.ts";
import { type Profile, runFilters, runPreFilter, scoreNodes } from "./framework/profile.ts";
import { FitError, type Status } from "./framework/status.ts";

export interface Decision {
  readonly nodeName: string;
  readonly evaluatedNodes: number;
  readonly feasibleNodes: number;
}

export interface CycleOptions {
  /** 0: adapts to the number of nodes. */
  readonly percentageOfNodesToScore: number;
  /** Where the last cycle stopped looking; turns, so that every node gets its chance. */
  readonly startIndex: number;
  readonly random: () => number;
}

const leastNodesToFind = 100;
const leastPercentage = 5;

/**
 * Finds the node for one pod against one snapshot; changes nothing.
 * @throws FitError when no node will do.
 * Source: pkg/scheduler/generic_scheduler.go
 */
export function decide(
  profile: Profile,
  state: CycleState,
  pod: PodInfo,
  snapshot: ClusterSnapshot,
  options: CycleOptions,
): Decision & { nextStartIndex: number } {
  const refusal = runPreFilter(profile, state, pod, snapshot);
  if (refusal?.code === "Error") throw new Error(refusal.reasons.join(", "));
  if (refusal !== undefined) throw new FitError(snapshot.nodes.length, new Map(), refusal);
  const { feasible, statuses, nextStartIndex } = findFeasible(profile, state, pod, snapshot, options);
  const evaluatedNodes = feasible.length + statuses.size;
  const [only] = feasible;
  if (only === undefined) throw new FitError(snapshot.nodes.length, statuses);
  if (feasible.length === 1) return { nodeName: only.name, evaluatedNodes, feasibleNodes: 1, nextStartIndex };
  const scores = scoreNodes(profile, state, pod, feasible, snapshot);
  const best = selectBest(scores, options.random);
  return { nodeName: (feasible[best] as NodeInfo).name, evaluatedNodes, feasibleNodes: feasible.length, nextStartIndex };
}

function findFeasible(
  profile: Profile,
  state: CycleState,
  pod: PodInfo,
  { nodes }: ClusterSnapshot,
  { percentageOfNodesToScore, startIndex }: CycleOptions,
): { feasible: NodeInfo[]; statuses: Map<string, Status>; nextStartIndex: number } {
  const wanted = nodesToFind(nodes.length, percentageOfNodesToScore);
  const feasible: NodeInfo[] = [];
  const statuses = new Map<string, Status>();
  let looked = 0;
  while (looked < nodes.length && feasible.length < wanted) {
    const node = nodes[(startIndex + looked++) % nodes.length] as NodeInfo;
    const status = runFilters(profile, state, pod, node);
    if (status === undefined) feasible.push(node);
    else if (status.code === "Error") throw new Error(`plugin ${status.plugin}: ${status.reasons.join(", ")}`);
    else statuses.set(node.name, status);
  }
  return { feasible, statuses, nextStartIndex: nodes.length === 0 ? 0 : (startIndex + looked) % nodes.length };
}

/** How many fitting nodes are enough. Source: numFeasibleNodesToFind */
export function nodesToFind(all: number, percentage: number): number {
  if (all < leastNodesToFind || percentage >= 100) return all;
  const adapted = percentage > 0 ? percentage : Math.max(50 - Math.trunc(all / 125), leastPercentage);
  return Math.max(Math.trunc((all * adapted) / 100), leastNodesToFind);
}

/** The place of the highest score; one of them by chance when there are several. */
export function selectBest(scores: readonly number[], random: () => number): number {
  let best = 0;
  let equals = 1;
  for (let i = 1; i < scores.length; i++) {
    const difference = (scores[i] as number) - (scores[best] as number);
    if (difference > 0) {
      best = i;
      equals = 1;
    } else if (difference === 0 && random() * ++equals < 1) {
      best = i;
    }
  }
  return best;
}
