import type { Pod, TopologySpreadConstraint } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { tableOf } from "@coxswain/apimachinery/process/narrowing/keys";
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
import { NodeTallies, type Share } from "./node-tallies.ts";
import type { PluginContext } from "./plugin-context.ts";
import { countOf, hasAllKeys, parseConstraints, parsed, type SpreadConstraint, TopologyCounts } from "./topology-counts.ts";

type Labels = Readonly<Record<string, string>>;

const actions = ["DoNotSchedule", "ScheduleAnyway"] as const;
type Action = (typeof actions)[number];

const hostname = "kubernetes.io/hostname";
const mismatch = "node(s) didn't match pod topology spread constraints";

const systemConstraints: readonly TopologySpreadConstraint[] = [
  { topologyKey: hostname, whenUnsatisfiable: "ScheduleAnyway", maxSkew: 3 },
  { topologyKey: "topology.kubernetes.io/zone", whenUnsatisfiable: "ScheduleAnyway", maxSkew: 5 },
];

/** PreFilter state, for the DoNotSchedule constraints. */
class HardState implements Cloneable {
  readonly constraints: readonly SpreadConstraint[];
  /** Nodes that match the pod's node affinity and have all topology labels. Only their domains are counted. */
  readonly eligible: TopologyCounts;
  /** Matching pods of all nodes, also of nodes that are not eligible. */
  readonly pods: TopologyCounts;
  /** The smallest count by key, which is needed for every node. */
  readonly #least = new Map<string, number>();
  /** By constraint and domain whether the pod may not be added to the domain: nodes of one domain need the same answer. */
  readonly #verdicts: readonly Map<string, boolean>[];

  constructor(constraints: readonly SpreadConstraint[], eligible: TopologyCounts, pods: TopologyCounts) {
    this.constraints = constraints;
    this.eligible = eligible;
    this.pods = pods;
    this.#verdicts = constraints.map(() => new Map());
  }

  clone(): HardState {
    return this.constraints.length === 0
      ? this
      : new HardState(this.constraints, this.eligible, TopologyCounts.copyOf(this.pods));
  }

  /** Whether the pod would exceed the skew of the constraint at `index` in a domain. @param labels of the pod */
  exceedsAt(index: number, value: string, labels: Labels | undefined): boolean {
    const verdicts = this.#verdicts[index]!;
    const known = verdicts.get(value);
    if (known !== undefined) return known;
    const exceeds = this.#exceeds(this.constraints[index]!, value, labels);
    verdicts.set(value, exceeds);
    return exceeds;
  }

  #exceeds({ topologyKey, selector, maxSkew }: SpreadConstraint, value: string, labels: Labels | undefined): boolean {
    // A domain that is not eligible counts as empty.
    const count = this.eligible.get(topologyKey, value) === undefined ? 0 : (this.pods.get(topologyKey, value) ?? 0);
    const own = selector.matches(labels) ? 1 : 0;
    return count + own - this.#leastOf(topologyKey) > maxSkew;
  }

  /** The smallest number of pods in a domain. Infinity without domains. */
  #leastOf(key: string): number {
    return this.#least.getOrInsertComputed(key, () => this.pods.leastOf(key, this.eligible));
  }

  add(key: string, value: string, by: number): void {
    this.#least.delete(key);
    for (const verdicts of this.#verdicts) verdicts.clear();
    this.pods.add(key, value, by);
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
  readonly #defaults: Readonly<Record<Action, readonly SpreadConstraint[]>>;
  readonly #selectorOf: SelectorOf | undefined;
  readonly #tallies = new NodeTallies();

  constructor(context: Pick<PluginContext, "informers">, options: PluginArgs["PodTopologySpread"]) {
    const { defaultingType, defaultConstraints = [] } = options;
    this.#isSystem = defaultingType === "System";
    const defaults = this.#isSystem ? systemConstraints : defaultConstraints;
    this.#defaults = tableOf(actions, (action) => parseConstraints(defaults, action));
    this.#selectorOf = defaults.length === 0 ? undefined : newDefaultSelector(context.informers);
  }

  *preFilter(state: CycleState, pod: PodInfo, snapshot: ClusterSnapshot): Steps<Status | undefined> {
    try {
      const constraints = this.#constraintsOf(pod, "DoNotSchedule");
      state.set(hardKey, yield* this.#countHard(constraints, pod, snapshot));
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

  mayRefuse(state: CycleState): boolean {
    return readState<HardState>(state, hardKey).constraints.length > 0;
  }

  filter(state: CycleState, { pod }: PodInfo, { node }: NodeInfo): Status | undefined {
    const counted = readState<HardState>(state, hardKey);
    const labels = node.metadata.labels ?? {};
    const { constraints } = counted;
    for (let i = 0; i < constraints.length; i++) {
      const value = labelOf(labels, constraints[i]!.topologyKey);
      if (value === undefined) return unresolvable(`${mismatch} (missing required label)`);
      if (counted.exceedsAt(i, value, pod.metadata.labels)) return unschedulable(mismatch);
    }
    return undefined;
  }

  *preScore(state: CycleState, pod: PodInfo, nodes: readonly NodeInfo[], snapshot: ClusterSnapshot): Steps<Status | undefined> {
    try {
      const constraints = this.#constraintsOf(pod, "ScheduleAnyway");
      // With the system defaults, nodes without a zone label still take part.
      const needsAllKeys = !this.#isSystem || (pod.pod.spec.topologySpreadConstraints ?? []).length > 0;
      state.set(softKey, yield* this.#countSoft(constraints, needsAllKeys, pod, nodes, snapshot));
      return undefined;
    } catch (err) {
      return failed(err);
    }
  }

  commonScore(state: CycleState): number | undefined {
    return readState<SoftState>(state, softKey).constraints.length === 0 ? maxNodeScore : undefined;
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

  *#countHard(constraints: readonly SpreadConstraint[], info: PodInfo, snapshot: ClusterSnapshot): Steps<HardState> {
    const { pod } = info;
    if (constraints.length === 0) return new HardState(constraints, new TopologyCounts(), new TopologyCounts());
    const pause = pausesFor(info);
    const eligible = yield* this.#tallies.count(
      info.isLarge
        ? undefined
        : JSON.stringify(["eligible", constraints.map(({ topologyKey }) => topologyKey), nodeTermsOf(pod)]),
      snapshot,
      () => snapshot.nodes,
      function* (node) {
        if (pause()) yield;
        const labels = node.node.metadata.labels ?? {};
        if (!matchesNode(pod, node.node) || !hasAllKeys(labels, constraints)) return [];
        return constraints.map(({ topologyKey }): Share => [topologyKey, labelOf(labels, topologyKey) ?? "", 1]);
      },
    );
    const counts = yield* this.#tallies.count(
      keyOf("hard", info, constraints),
      snapshot,
      () => snapshot.nodes,
      function* (node) {
        if (pause()) yield;
        return podShares(node, constraints, pod.metadata.namespace);
      },
    );
    return new HardState(constraints, eligible, counts);
  }

  *#countSoft(
    constraints: readonly SpreadConstraint[],
    needsAllKeys: boolean,
    incoming: PodInfo,
    candidates: readonly NodeInfo[],
    snapshot: ClusterSnapshot,
  ): Steps<SoftState> {
    const { pod } = incoming;
    const ignored = new Set<string>();
    if (constraints.length === 0) return { constraints, ignored, counts: new TopologyCounts(), weights: [] };
    const pause = pausesFor(incoming);
    const lacksKey = ({ node }: NodeInfo): boolean => needsAllKeys && !hasAllKeys(node.metadata.labels ?? {}, constraints);
    const domains = constraints.map(() => new Set<string>());
    for (const info of candidates) {
      if (pause()) yield;
      if (lacksKey(info)) ignored.add(info.name);
      else
        for (const [i, { topologyKey }] of constraints.entries())
          domains[i]!.add(labelOf(info.node.metadata.labels, topologyKey) ?? "");
    }
    const beyondHosts = constraints.filter(({ topologyKey }) => topologyKey !== hostname);
    const key = keyOf("soft", incoming, constraints, nodeTermsOf(pod), needsAllKeys);
    const counts =
      beyondHosts.length === 0
        ? new TopologyCounts()
        : yield* this.#tallies.count(
            key,
            snapshot,
            () => snapshot.nodes,
            function* (info) {
              if (pause()) yield;
              return lacksKey(info) || !matchesNode(pod, info.node) ? [] : podShares(info, beyondHosts, pod.metadata.namespace);
            },
          );
    const weights = constraints.map(({ topologyKey }, i) =>
      Math.log((topologyKey === hostname ? candidates.length - ignored.size : domains[i]!.size) + 2),
    );
    return { constraints, ignored, counts, weights };
  }

  #constraintsOf({ pod }: PodInfo, action: Action): SpreadConstraint[] {
    const own = pod.spec.topologySpreadConstraints ?? [];
    if (own.length > 0) return parseConstraints(own, action);
    const constraints = this.#defaults[action];
    if (constraints.length === 0 || this.#selectorOf === undefined) return [];
    const selector = this.#selectorOf(pod);
    return selector.empty ? [] : constraints.map((constraint) => ({ ...constraint, ...parsed(selector) }));
  }
}

/** Equal for pods that get the same counts; undefined for a pod whose counts are not kept. */
function keyOf(
  what: string,
  info: PodInfo,
  constraints: readonly SpreadConstraint[],
  ...more: readonly unknown[]
): string | undefined {
  if (info.isLarge) return undefined;
  const counted = constraints.map(({ topologyKey, text }) => [topologyKey, text]);
  return JSON.stringify([what, info.pod.metadata.namespace, counted, ...more]);
}

/** What `matchesNode` depends on. */
const nodeTermsOf = ({ spec }: Pod): unknown => [spec.nodeSelector ?? null, spec.affinity?.nodeAffinity ?? null];

/** @returns a function that says after how many nodes to yield */
function pausesFor(info: PodInfo): () => boolean {
  const perStep = nodesPerStepFor(info);
  let looked = 0;
  return () => ++looked % perStep === 0;
}

/** The matching pods of a node for each constraint. */
function podShares(info: NodeInfo, constraints: readonly SpreadConstraint[], namespace: string | undefined): Share[] {
  return constraints.flatMap((constraint): Share[] => {
    const count = countOf(info, constraint, namespace);
    return count === 0 ? [] : [[constraint.topologyKey, labelOf(info.node.metadata.labels, constraint.topologyKey) ?? "", count]];
  });
}

function change(counted: HardState, pod: PodInfo, other: PodInfo, { node }: NodeInfo, by: 1 | -1): void {
  const { constraints } = counted;
  if (constraints.length === 0 || other.pod.metadata.namespace !== pod.pod.metadata.namespace) return;
  const labels = node.metadata.labels ?? {};
  if (!hasAllKeys(labels, constraints) || !matchesNode(pod.pod, node)) return;
  for (const { topologyKey, selector } of constraints) {
    if (selector.matches(other.pod.metadata.labels)) counted.add(topologyKey, labelOf(labels, topologyKey) ?? "", by);
  }
}
