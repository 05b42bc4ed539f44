import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { runSteps, type Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { NodeInfo, PodInfo } from "./cache/node-info.ts";
import type { ClusterSnapshot } from "./cache/snapshot.ts";
import type { Extender } from "./extenders/extender.ts";
import { addExtenderScores, filterByExtenders } from "./extenders/run-extenders.ts";
import type { CycleState } from "./framework/cycle-state.ts";
import { type CycleTimer, timedSteps, untimed } from "./framework/cycle-timer.ts";
import type { Nominator } from "./framework/nominator.ts";
import { FitError, NoNodesError, type Status } from "./framework/status.ts";
import { NodeFilter, nodesPerStepFor, type Profile, runningPreFilter, runPreScore, scoreNodes } from "./profile.ts";

interface ScoredNode {
  readonly node: string;
  readonly score: number;
}

/** Result of a scheduling cycle. */
export interface Decision {
  readonly nodeName: string;
  readonly evaluatedNodes: number;
  readonly feasibleNodes: number;
  /** The nodes with the highest scores, with their scores; empty when a single node was feasible. */
  readonly best: readonly ScoredNode[];
  /** Index of the first node to evaluate in the next cycle. */
  readonly nextStartIndex: number;
}

interface CycleOptions {
  /** 0: derived from the number of nodes. */
  readonly percentageOfNodesToScore: number;
  /** Index of the first node to evaluate. Advances with each cycle, so that all nodes get an equal chance. */
  readonly startIndex: number;
  readonly random: () => number;
  readonly nominator: Nominator;
  readonly extenders: readonly Extender[];
  /** Feature gate PreferNominatedNode: evaluates the nominated node first, and the others only when it does not fit. */
  readonly preferNominatedNode: boolean;
  readonly timer?: CycleTimer | undefined;
  /** Yields to the event loop in cycles of large pods or of many nodes; undefined: never. */
  readonly turns?: Turns | undefined;
}

interface Search {
  readonly profile: Profile;
  readonly state: CycleState;
  readonly pod: PodInfo;
  readonly snapshot: ClusterSnapshot;
  readonly options: CycleOptions;
  /** Rejections by node name. */
  readonly statuses: Map<string, Status>;
}

/**
 * Selects a node for the pod; has no side effects. The result is a promise with extenders, and when the cycle does not end within
 * this turn of the event loop; otherwise the caller can assume the pod before the snapshot becomes stale.
 * @throws FitError when no node fits, NoNodesError when there are no nodes, PluginError
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
  const extenders = options.extenders.filter((extender) => extender.isInterested(pod.pod));
  return extenders.length > 0 ? decideWithExtenders(search, extenders) : run(search, decideAlone(search));
}

const run = <T>({ options }: Search, steps: Steps<T>): T | Promise<T> => runSteps(options.turns, steps);

function* decideAlone(search: Search): Steps<Decision> {
  const { options } = search;
  yield* preFilter(search);
  const nominated = findNominated(search);
  const found = nominated.length > 0 ? { feasible: nominated, next: options.startIndex } : yield* findFeasible(search);
  const alone = pickAlone(search, found.feasible);
  if (alone !== undefined) return decisionOf(search, found.feasible, alone, found.next);
  const totals = yield* score(search, found.feasible);
  return decisionOf(search, found.feasible, selectBest(totals, options.random), found.next, totals);
}

function* preFilter({ profile, state, pod, snapshot, options }: Search): Steps<void> {
  const timer = options.timer ?? untimed;
  const refusal = yield* timedSteps(timer, "PreFilter", runningPreFilter(profile, state, pod, snapshot, timer.plugins));
  if (refusal === undefined) return;
  // A PreFilter rejection applies to every node.
  throw new FitError(snapshot.nodes.length, new Map(snapshot.nodes.map(({ name }) => [name, refusal])));
}

async function decideWithExtenders(search: Search, extenders: readonly Extender[]): Promise<Decision> {
  const { pod, statuses, options } = search;
  await run(search, preFilter(search));
  const pass = (nodes: readonly NodeInfo[]): Promise<readonly NodeInfo[]> =>
    filterByExtenders(extenders, pod.pod, nodes, statuses);
  let next = options.startIndex;
  // When the check of the nominated node fails, the other nodes are evaluated.
  let feasible = await pass(findNominated(search)).catch((): readonly NodeInfo[] => []);
  if (feasible.length === 0) {
    const found = await run(search, findFeasible(search));
    next = found.next;
    feasible = await pass(found.feasible);
  }
  const alone = pickAlone(search, feasible);
  if (alone !== undefined) return decisionOf(search, feasible, alone, next);
  const totals = await run(search, score(search, feasible));
  await addExtenderScores(extenders, pod.pod, feasible, totals);
  return decisionOf(search, feasible, selectBest(totals, options.random), next, totals);
}

const newFilter = ({ profile, state, pod, options }: Search): NodeFilter =>
  new NodeFilter(profile, state, pod, options.nominator, options.timer?.plugins);

function findNominated(search: Search): NodeInfo[] {
  const { pod, snapshot, options, statuses } = search;
  const name = pod.pod.status?.nominatedNodeName;
  const node = name && options.preferNominatedNode ? snapshot.get(name) : undefined;
  if (node === undefined) return [];
  const status = newFilter(search).refusal(node);
  if (status !== undefined) statuses.set(node.name, status);
  return status === undefined ? [node] : [];
}

function findFeasible(search: Search): Steps<{ feasible: NodeInfo[]; next: number }> {
  return timedSteps(search.options.timer ?? untimed, "Filter", filterNodes(search));
}

function* filterNodes(search: Search): Steps<{ feasible: NodeInfo[]; next: number }> {
  const { pod, snapshot, options, statuses } = search;
  const { nodes } = snapshot;
  const filter = newFilter(search);
  const wanted = nodesToFind(nodes.length, options.percentageOfNodesToScore);
  const perStep = nodesPerStepFor(pod);
  const feasible: NodeInfo[] = [];
  let looked = 0;
  while (looked < nodes.length && feasible.length < wanted) {
    const node = nodes[(options.startIndex + looked++) % nodes.length]!;
    const status = filter.refusal(node);
    if (status === undefined) feasible.push(node);
    else statuses.set(node.name, status);
    if (looked % perStep === 0) yield;
  }
  return { feasible, next: (options.startIndex + looked) % nodes.length };
}

/** Index 0 when only one node is feasible, undefined for several. @throws FitError for none */
function pickAlone({ snapshot, statuses }: Search, feasible: readonly NodeInfo[]): number | undefined {
  if (feasible.length === 0) throw new FitError(snapshot.nodes.length, statuses);
  return feasible.length === 1 ? 0 : undefined;
}

function* score({ profile, state, pod, snapshot, options }: Search, feasible: readonly NodeInfo[]): Steps<number[]> {
  const timer = options.timer ?? untimed;
  yield* timedSteps(timer, "PreScore", runPreScore(profile, state, pod, feasible, snapshot, timer.plugins));
  return yield* timedSteps(timer, "Score", scoreNodes(profile, state, pod, feasible, snapshot, timer.plugins));
}

function decisionOf(
  { statuses }: Search,
  feasible: readonly NodeInfo[],
  best: number,
  nextStartIndex: number,
  totals: readonly number[] = [],
): Decision {
  return {
    nodeName: feasible[best]!.name,
    best: bestThree(feasible, totals),
    evaluatedNodes: feasible.length + statuses.size,
    feasibleNodes: feasible.length,
    nextStartIndex,
  };
}

/** Finds the three best in one pass, for clusters with many nodes. */
function bestThree(nodes: readonly NodeInfo[], totals: readonly number[]): ScoredNode[] {
  const best: ScoredNode[] = [];
  for (let i = 0; i < totals.length; i++) {
    const score = totals[i]!;
    if (best.length === 3 && score <= best[2]!.score) continue;
    const at = best.findIndex((other) => other.score < score);
    best.splice(at < 0 ? best.length : at, 0, { node: nodes[i]!.name, score });
    if (best.length > 3) best.length = 3;
  }
  return best;
}

const leastNodesToFind = 100;
const leastPercentage = 5;

/** Number of feasible nodes after which the search stops. Source: numFeasibleNodesToFind */
export function nodesToFind(all: number, percentage: number): number {
  if (all < leastNodesToFind || percentage >= 100) return all;
  const adapted = percentage > 0 ? percentage : Math.max(50 - Math.trunc(all / 125), leastPercentage);
  return Math.max(Math.trunc((all * adapted) / 100), leastNodesToFind);
}

/** Index of the highest score; a random one among equals. */
export function selectBest(scores: readonly number[], random: () => number): number {
  let best = 0;
  let equals = 1;
  for (let i = 1; i < scores.length; i++) {
    const difference = scores[i]! - scores[best]!;
    if (difference > 0) {
      best = i;
      equals = 1;
    } else if (difference === 0 && random() * ++equals < 1) {
      best = i;
    }
  }
  return best;
}
