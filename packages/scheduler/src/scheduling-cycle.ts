import type { NodeInfo, PodInfo } from "./cache/node-info.ts";
import type { ClusterSnapshot } from "./cache/snapshot.ts";
import type { Extender } from "./extenders/extender.ts";
import { addExtenderScores, filterByExtenders } from "./extenders/run-extenders.ts";
import type { CycleState } from "./framework/cycle-state.ts";
import { type CycleTimer, untimed } from "./framework/cycle-timer.ts";
import type { Nominator } from "./framework/nominator.ts";
import { type Profile, runFiltersWithNominated, runPreFilter, runPreScore, scoreNodes } from "./framework/profile.ts";
import { FitError, NoNodesError, type Status } from "./framework/status.ts";

export interface Decision {
  readonly nodeName: string;
  readonly evaluatedNodes: number;
  readonly feasibleNodes: number;
  /** Where the next cycle begins to look. */
  readonly nextStartIndex: number;
}

export interface CycleOptions {
  /** 0: adapts to the number of nodes. */
  readonly percentageOfNodesToScore: number;
  /** Where the last cycle stopped looking; turns, so that every node gets its chance. */
  readonly startIndex: number;
  readonly random: () => number;
  readonly nominator: Nominator;
  readonly extenders: readonly Extender[];
  /** PreferNominatedNode: looks first, and at best only, at the node that was made free for the pod. */
  readonly preferNominatedNode: boolean;
  readonly timer?: CycleTimer | undefined;
}

interface Search {
  readonly profile: Profile;
  readonly state: CycleState;
  readonly pod: PodInfo;
  readonly snapshot: ClusterSnapshot;
  readonly options: CycleOptions;
  /** Refusals by node. */
  readonly statuses: Map<string, Status>;
}

/**
 * Finds the node for one pod against one snapshot; changes nothing. Without extenders the answer is there at once, with
 * no turn of the event loop between the look at the cluster and what the caller does next.
 * @throws FitError when no node will do, NoNodesError when there is none, PluginError
 * Source: pkg/scheduler/generic_scheduler.go
 */
export function decide(
  profile: Profile,
  state: CycleState,
  pod: PodInfo,
  snapshot: ClusterSnapshot,
  options: CycleOptions,
): Decision | Promise<Decision> {
  if (snapshot.nodes.length === 0) throw new NoNodesError();
  const search: Search = { profile, state, pod, snapshot, options, statuses: new Map() };
  const timer = options.timer ?? untimed;
  const refusal = timer.point("PreFilter", () => runPreFilter(profile, state, pod, snapshot, timer.plugins));
  if (refusal !== undefined) {
    // Of the cluster as a whole: every node gets it.
    throw new FitError(snapshot.nodes.length, new Map(snapshot.nodes.map(({ name }) => [name, refusal])));
  }
  const extenders = options.extenders.filter((extender) => extender.isInterested(pod.pod));
  if (extenders.length > 0) return decideWithExtenders(search, extenders);
  const nominated = findNominated(search);
  const found = nominated.length > 0 ? { feasible: nominated, next: options.startIndex } : findFeasible(search);
  const best = pickAlone(search, found.feasible) ?? selectBest(score(search, found.feasible), options.random);
  return decisionOf(search, found.feasible, best, found.next);
}

async function decideWithExtenders(search: Search, extenders: readonly Extender[]): Promise<Decision> {
  const { pod, statuses, options } = search;
  const pass = (nodes: readonly NodeInfo[]): Promise<readonly NodeInfo[]> =>
    filterByExtenders(extenders, pod.pod, nodes, statuses);
  let next = options.startIndex;
  // A nomination that cannot be looked into is no reason not to look elsewhere.
  let feasible = await pass(findNominated(search)).catch((): readonly NodeInfo[] => []);
  if (feasible.length === 0) {
    const found = findFeasible(search);
    next = found.next;
    feasible = await pass(found.feasible);
  }
  let best = pickAlone(search, feasible);
  if (best === undefined) {
    const totals = score(search, feasible);
    await addExtenderScores(extenders, pod.pod, feasible, totals);
    best = selectBest(totals, options.random);
  }
  return decisionOf(search, feasible, best, next);
}

function findNominated({ profile, state, pod, snapshot, options, statuses }: Search): NodeInfo[] {
  const name = pod.pod.status?.nominatedNodeName;
  const node = name && options.preferNominatedNode ? snapshot.get(name) : undefined;
  if (node === undefined) return [];
  const status = runFiltersWithNominated(profile, state, pod, node, options.nominator, options.timer?.plugins);
  if (status !== undefined) statuses.set(node.name, status);
  return status === undefined ? [node] : [];
}

function findFeasible(search: Search): { feasible: NodeInfo[]; next: number } {
  return (search.options.timer ?? untimed).point("Filter", () => {
    const { profile, state, pod, snapshot, options, statuses } = search;
    const { nodes } = snapshot;
    const wanted = nodesToFind(nodes.length, options.percentageOfNodesToScore);
    const feasible: NodeInfo[] = [];
    let looked = 0;
    while (looked < nodes.length && feasible.length < wanted) {
      const node = nodes[(options.startIndex + looked++) % nodes.length] as NodeInfo;
      const status = runFiltersWithNominated(profile, state, pod, node, options.nominator, options.timer?.plugins);
      if (status === undefined) feasible.push(node);
      else statuses.set(node.name, status);
    }
    return { feasible, next: (options.startIndex + looked) % nodes.length };
  });
}

/** @throws FitError for none */
function pickAlone({ snapshot, statuses }: Search, feasible: readonly NodeInfo[]): number | undefined {
  if (feasible.length === 0) throw new FitError(snapshot.nodes.length, statuses);
  return feasible.length === 1 ? 0 : undefined;
}

function score({ profile, state, pod, snapshot, options }: Search, feasible: readonly NodeInfo[]): number[] {
  const { plugins, point } = options.timer ?? untimed;
  point("PreScore", () => runPreScore(profile, state, pod, feasible, snapshot, plugins));
  return point("Score", () => scoreNodes(profile, state, pod, feasible, snapshot, plugins));
}

function decisionOf({ statuses }: Search, feasible: readonly NodeInfo[], best: number, nextStartIndex: number): Decision {
  return {
    nodeName: (feasible[best] as NodeInfo).name,
    evaluatedNodes: feasible.length + statuses.size,
    feasibleNodes: feasible.length,
    nextStartIndex,
  };
}

const leastNodesToFind = 100;
const leastPercentage = 5;

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
