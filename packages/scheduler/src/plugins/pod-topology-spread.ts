import type { TopologySpreadConstraint } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { labelOf } from "@coxswain/apimachinery/scheduling/labels";
import { matchesNode } from "@coxswain/apimachinery/scheduling/node-selector";
import type { NodeInfo, PodInfo } from "../cache/node-info.ts";
import type { ClusterSnapshot } from "../cache/snapshot.ts";
import type { PluginArgs } from "../config/plugin-args.ts";
import type { CycleState } from "../framework/cycle-state.ts";
import { type Cloneable, readState } from "../framework/cycle-state.ts";
import { maxNodeScore, type Plugin } from "../framework/extension-points.ts";
import type { Status } from "../framework/status.ts";
import { failed, unresolvable, unschedulable } from "../framework/status.ts";
import { nodesPerStepFor } from "../profile.ts";
import { newDefaultSelector, type SelectorOf } from "./default-selector.ts";
import type { PluginContext } from "./plugin-context.ts";
import { countOf, hasAllKeys, parseConstraints, parsed, type SpreadConstraint, TopologyCounts } from "./topology-counts.ts";

const hostname = "kubernetes.io/hostname";
const mismatch = "node(s) didn't match pod topology spread constraints";

const systemConstraints: readonly TopologySpreadConstraint[] = [
  { topologyKey: hostname, whenUnsatisfiable: "ScheduleAnyway", maxSkew: 3 },
  { topologyKey: "topology.kubernetes.io/zone", whenUnsatisfiable: "ScheduleAnyway", maxSkew: 5 },
];

/** PreFilter state: pods per topology domain, for the DoNotSchedule constraints. */
class HardState implements Cloneable {
  readonly constraints: readonly SpreadConstraint[];
  readonly counts: TopologyCounts;

  constructor(constraints: readonly SpreadConstraint[], counts: TopologyCounts) {
    this.constraints = constraints;
    this.counts = counts;
  }

  clone(): HardState {
    return this.constraints.length === 0 ? this : new HardState(this.constraints, TopologyCounts.copyOf(this.counts));
  }
}

interface SoftState {
  readonly constraints: readonly SpreadConstraint[];
  /** Names of nodes without all topology labels; they score 0. */
  readonly ignored: ReadonlySet<string>;
  readonly counts: TopologyCounts;
  /** Weight of each constraint. It grows with the number of domains, because the count per domain shrinks with it. */
  readonly weights: readonly number[];
}

const hardKey = "PreFilterPodTopologySpread";
const softKey = "PreScorePodTopologySpread";

/**
 * Spreads pods over topology domains (the values of a node label) by the pod's constraints, or by the configured default
 * constraints for pods without any.
 * Source: KEP-895; pkg/scheduler/framework/plugins/podtopologyspread
 */
export function newPodTopologySpread(
  context: Pick<PluginContext, "informers">,
  options: PluginArgs["PodTopologySpread"],
): Plugin {
  return new PodTopologySpreadPlugin(context, options);
}

class PodTopologySpreadPlugin implements Plugin {
  readonly name = "PodTopologySpread";
  readonly wakeUpOn = ["Pod/*", "Node/Add", "Node/Delete", "Node/UpdateLabel"] as const;
  readonly #isSystem: boolean;
  readonly #defaults: readonly TopologySpreadConstraint[];
  readonly #selectorOf: SelectorOf | undefined;

  constructor(context: Pick<PluginContext, "informers">, options: PluginArgs["PodTopologySpread"]) {
    const { defaultingType, defaultConstraints = [] } = options;
    this.#isSystem = defaultingType === "System";
    this.#defaults = this.#isSystem ? systemConstraints : defaultConstraints;
    this.#selectorOf = this.#defaults.length === 0 ? undefined : newDefaultSelector(context.informers);
  }

  *preFilter(state: CycleState, pod: PodInfo, snapshot: ClusterSnapshot): Steps<Status | undefined> {
    try {
      const constraints = this.#constraintsOf(pod, "DoNotSchedule");
      state.set(hardKey, new HardState(constraints, yield* countHard(constraints, pod, snapshot)));
      return undefined;
    } catch (err) {
      return failed(err);
    }
  }

  addPod(state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo): void {
    change(readState<HardState>(state, hardKey), pod, other, node, 1);
  }

  removePod(state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo): void {
    change(readState<HardState>(state, hardKey), pod, other, node, -1);
  }

  filter(state: CycleState, { pod }: PodInfo, { node }: NodeInfo): Status | undefined {
    const { constraints, counts } = readState<HardState>(state, hardKey);
    const labels = node.metadata.labels ?? {};
    for (const { topologyKey, selector, maxSkew } of constraints) {
      const value = labelOf(labels, topologyKey);
      if (value === undefined) return unresolvable(`${mismatch} (missing required label)`);
      const own = selector.matches(pod.metadata.labels) ? 1 : 0;
      const skew = (counts.get(topologyKey, value) ?? 0) + own - counts.least(topologyKey);
      if (skew > maxSkew) return unschedulable(mismatch);
    }
    return undefined;
  }

  *preScore(state: CycleState, pod: PodInfo, nodes: readonly NodeInfo[], snapshot: ClusterSnapshot): Steps<Status | undefined> {
    try {
      const constraints = this.#constraintsOf(pod, "ScheduleAnyway");
      // With the system defaults, nodes without a zone label still take part.
      const needsAllKeys = !this.#isSystem || (pod.pod.spec.topologySpreadConstraints ?? []).length > 0;
      state.set(softKey, yield* countSoft(constraints, needsAllKeys, pod, nodes, snapshot));
      return undefined;
    } catch (err) {
      return failed(err);
    }
  }

  score(state: CycleState, { pod }: PodInfo, info: NodeInfo): number {
    const { constraints, ignored, counts, weights } = readState<SoftState>(state, softKey);
    if (ignored.has(info.name)) return 0;
    let score = 0;
    for (const [i, constraint] of constraints.entries()) {
      const { topologyKey, maxSkew } = constraint;
      const value = labelOf(info.node.metadata.labels, topologyKey);
      if (value === undefined) continue;
      const count =
        topologyKey === hostname ? countOf(info, constraint, pod.metadata.namespace) : (counts.get(topologyKey, value) ?? 0);
      // Adding maxSkew - 1 makes the differences between domains relatively smaller when a larger skew is tolerated.
      score += count * weights[i]! + (maxSkew - 1);
    }
    return Math.trunc(score);
  }

  normalize(state: CycleState, _: PodInfo, scores: number[], nodes: readonly NodeInfo[]): void {
    const { ignored } = readState<SoftState>(state, softKey);
    let least = Number.POSITIVE_INFINITY;
    let most = 0;
    for (const [i, { name }] of nodes.entries()) {
      if (ignored.has(name)) continue;
      least = Math.min(least, scores[i]!);
      most = Math.max(most, scores[i]!);
    }
    for (const [i, { name }] of nodes.entries()) {
      if (ignored.has(name)) scores[i] = 0;
      else if (most === 0) scores[i] = maxNodeScore;
      else scores[i] = Math.trunc((maxNodeScore * (most + least - scores[i]!)) / most);
    }
  }

  #constraintsOf({ pod }: PodInfo, action: TopologySpreadConstraint["whenUnsatisfiable"]): SpreadConstraint[] {
    const own = pod.spec.topologySpreadConstraints ?? [];
    if (own.length > 0) return parseConstraints(own, action);
    const constraints = parseConstraints(this.#defaults, action);
    if (constraints.length === 0 || this.#selectorOf === undefined) return [];
    const selector = this.#selectorOf(pod);
    return selector.empty ? [] : constraints.map((constraint) => ({ ...constraint, ...parsed(selector) }));
  }
}

/** A domain is counted when it has a node that matches the pod's node affinity and has all topology labels. */
function* countHard(constraints: readonly SpreadConstraint[], info: PodInfo, { nodes }: ClusterSnapshot): Steps<TopologyCounts> {
  const { pod } = info;
  const perStep = nodesPerStepFor(info);
  const counts = new TopologyCounts();
  if (constraints.length === 0) return counts;
  const isEligible = ({ node }: NodeInfo): boolean =>
    matchesNode(pod, node) && hasAllKeys(node.metadata.labels ?? {}, constraints);
  for (const [at, node] of nodes.entries()) {
    if (at % perStep === perStep - 1) yield;
    if (!isEligible(node)) continue;
    for (const { topologyKey } of constraints) counts.add(topologyKey, labelOf(node.node.metadata.labels, topologyKey) ?? "", 0);
  }
  // In a counted domain the pods of all nodes count, also of nodes that do not match.
  for (const [at, node] of nodes.entries()) {
    if (at % perStep === perStep - 1) yield;
    for (const constraint of constraints) {
      const { topologyKey } = constraint;
      const value = labelOf(node.node.metadata.labels, topologyKey) ?? "";
      if (counts.get(topologyKey, value) === undefined) continue;
      counts.add(topologyKey, value, countOf(node, constraint, pod.metadata.namespace));
    }
  }
  return counts;
}

function change({ constraints, counts }: HardState, pod: PodInfo, other: PodInfo, { node }: NodeInfo, by: 1 | -1): void {
  if (other.pod.metadata.namespace !== pod.pod.metadata.namespace) return;
  const labels = node.metadata.labels ?? {};
  if (!hasAllKeys(labels, constraints) || !matchesNode(pod.pod, node)) return;
  for (const { topologyKey, selector } of constraints) {
    if (selector.matches(other.pod.metadata.labels)) counts.add(topologyKey, labelOf(labels, topologyKey) ?? "", by);
  }
}

function* countSoft(
  constraints: readonly SpreadConstraint[],
  needsAllKeys: boolean,
  incoming: PodInfo,
  candidates: readonly NodeInfo[],
  { nodes }: ClusterSnapshot,
): Steps<SoftState> {
  const { pod } = incoming;
  const perStep = nodesPerStepFor(incoming);
  const counts = new TopologyCounts();
  const ignored = new Set<string>();
  const domains = constraints.map(() => 0);
  const lacksKey = ({ node }: NodeInfo): boolean => needsAllKeys && !hasAllKeys(node.metadata.labels ?? {}, constraints);
  if (constraints.length === 0) return { constraints, ignored, counts, weights: [] };
  for (const [at, info] of candidates.entries()) {
    if (at % perStep === perStep - 1) yield;
    if (lacksKey(info)) {
      ignored.add(info.name);
      continue;
    }
    for (const [i, { topologyKey }] of constraints.entries()) {
      const value = labelOf(info.node.metadata.labels, topologyKey) ?? "";
      if (topologyKey === hostname || counts.get(topologyKey, value) !== undefined) continue;
      counts.add(topologyKey, value, 0);
      domains[i] = domains[i]! + 1;
    }
  }
  const beyondHosts = constraints.filter(({ topologyKey }) => topologyKey !== hostname);
  if (beyondHosts.length > 0) {
    for (const [at, info] of nodes.entries()) {
      if (at % perStep === perStep - 1) yield;
      if (lacksKey(info) || !matchesNode(pod, info.node)) continue;
      for (const constraint of beyondHosts) {
        const { topologyKey } = constraint;
        const value = labelOf(info.node.metadata.labels, topologyKey) ?? "";
        if (counts.get(topologyKey, value) === undefined) continue;
        counts.add(topologyKey, value, countOf(info, constraint, pod.metadata.namespace));
      }
    }
  }
  const weights = constraints.map(({ topologyKey }, i) =>
    Math.log((topologyKey === hostname ? candidates.length - ignored.size : domains[i]!) + 2),
  );
  return { constraints, ignored, counts, weights };
}
