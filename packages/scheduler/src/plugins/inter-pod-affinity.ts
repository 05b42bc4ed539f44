import type { Lister } from "@coxswain/apimachinery/informers/lister";
import type { Namespace } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { namespaces } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { labelOf } from "@coxswain/apimachinery/scheduling/labels";
import { type AffinityTerm, matchesAffinityTerm, type WeightedAffinityTerm } from "../cache/affinity-terms.ts";
import type { NodeInfo, PodInfo } from "../cache/node-info.ts";
import type { ClusterSnapshot } from "../cache/snapshot.ts";
import type { PluginArgs } from "../config/plugin-args.ts";
import type { CycleState } from "../framework/cycle-state.ts";
import { type Cloneable, readState } from "../framework/cycle-state.ts";
import { maxNodeScore, type Plugin } from "../framework/extension-points.ts";
import type { Status } from "../framework/status.ts";
import { unresolvable, unschedulable } from "../framework/status.ts";
import type { PluginContext } from "./plugin-context.ts";
import { TopologyCounts } from "./topology-counts.ts";

type Labels = Readonly<Record<string, string>>;

/** Matching pods by topology domain. Namespace selectors of the incoming pod's terms are resolved to names. */
class AffinityState implements Cloneable {
  readonly required: readonly AffinityTerm[];
  readonly requiredAnti: readonly AffinityTerm[];
  readonly namespaceLabels: Labels | undefined;
  /** Existing pods that match all affinity terms of the incoming pod. */
  near = new TopologyCounts();
  /** Existing pods that match an anti-affinity term of the incoming pod. */
  away = new TopologyCounts();
  /** Existing pods with an anti-affinity term that matches the incoming pod. */
  refusing = new TopologyCounts();

  constructor(required: readonly AffinityTerm[], requiredAnti: readonly AffinityTerm[], namespaceLabels: Labels | undefined) {
    this.required = required;
    this.requiredAnti = requiredAnti;
    this.namespaceLabels = namespaceLabels;
  }

  clone(): AffinityState {
    const copy = new AffinityState(this.required, this.requiredAnti, this.namespaceLabels);
    copy.near = TopologyCounts.copyOf(this.near);
    copy.away = TopologyCounts.copyOf(this.away);
    copy.refusing = TopologyCounts.copyOf(this.refusing);
    return copy;
  }

  countRefusal(pod: PodInfo, other: PodInfo, node: NodeInfo, by: number): void {
    for (const term of other.affinity?.requiredAnti ?? [])
      if (matchesAffinityTerm(term, pod.pod, this.namespaceLabels)) count(this.refusing, term, node, by);
  }

  countWish(other: PodInfo, node: NodeInfo, by: number): void {
    if (matchesAll(this.required, other)) for (const term of this.required) count(this.near, term, node, by);
    for (const term of this.requiredAnti) if (matchesAffinityTerm(term, other.pod)) count(this.away, term, node, by);
  }
}

/** Comparisons of a term with a pod between two yields. */
const comparedPerStep = 4096;

/** @returns a function that counts comparisons and says when to yield */
function pauses(): (comparisons?: number) => boolean {
  let compared = 0;
  return (comparisons = 0) => {
    compared += 1 + comparisons;
    if (compared < comparedPerStep) return false;
    compared = 0;
    return true;
  };
}

function count(counts: TopologyCounts, { topologyKey }: AffinityTerm, { node }: NodeInfo, by: number): void {
  const value = labelOf(node.metadata.labels, topologyKey);
  if (value !== undefined) counts.add(topologyKey, value, by, true);
}

const matchesAll = (terms: readonly AffinityTerm[], { pod }: PodInfo): boolean =>
  terms.length > 0 && terms.every((term) => matchesAffinityTerm(term, pod));

const filterKey = "PreFilterInterPodAffinity";
const scoreKey = "PreScoreInterPodAffinity";

/**
 * Pod affinity and anti-affinity: the terms of the incoming pod, and those of existing pods that match it.
 * Source: pkg/scheduler/framework/plugins/interpodaffinity
 */
export function newInterPodAffinity(
  context: Pick<PluginContext, "informers" | "gates">,
  options: PluginArgs["InterPodAffinity"],
): Plugin {
  return new InterPodAffinityPlugin(context, options);
}

class InterPodAffinityPlugin implements Plugin {
  readonly name = "InterPodAffinity";
  readonly wakeUpOn = ["Pod/*", "Node/Add", "Node/UpdateLabel"] as const;
  readonly #options: PluginArgs["InterPodAffinity"];
  readonly #selectsNamespaces: boolean;
  readonly #namespaceLister: Lister<Namespace> | undefined;

  constructor(context: Pick<PluginContext, "informers" | "gates">, options: PluginArgs["InterPodAffinity"]) {
    this.#options = options;
    const { gates, informers } = context;
    this.#selectsNamespaces = gates.enabled("PodAffinityNamespaceSelector");
    this.#namespaceLister = this.#selectsNamespaces ? informers.for<Namespace>(namespaces).lister : undefined;
  }

  *preFilter(state: CycleState, pod: PodInfo, snapshot: ClusterSnapshot): Steps<Status | undefined> {
    const { required = [], requiredAnti = [], parseError } = pod.affinity ?? {};
    if (parseError !== undefined) return unresolvable(`parsing pod: ${parseError}`);
    const counted = new AffinityState(
      required.map((term) => this.#resolve(term)),
      requiredAnti.map((term) => this.#resolve(term)),
      this.#labelsOf(pod.pod.metadata.namespace),
    );
    const pause = pauses();
    for (const node of snapshot.havingRequiredAntiAffinity) {
      for (const other of node.podsWithAffinity) {
        counted.countRefusal(pod, other, node, 1);
        if (pause(other.affinity?.requiredAnti.length)) yield;
      }
    }
    if (required.length > 0 || requiredAnti.length > 0) {
      for (const node of snapshot.nodes) {
        for (const other of node.pods.values()) {
          counted.countWish(other, node, 1);
          if (pause(required.length + requiredAnti.length)) yield;
        }
      }
    }
    state.set(filterKey, counted);
    return undefined;
  }

  addPod(state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo): void {
    const counted = readState<AffinityState>(state, filterKey);
    counted.countRefusal(pod, other, node, 1);
    counted.countWish(other, node, 1);
  }

  removePod(state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo): void {
    const counted = readState<AffinityState>(state, filterKey);
    counted.countRefusal(pod, other, node, -1);
    counted.countWish(other, node, -1);
  }

  filter(state: CycleState, pod: PodInfo, { node }: NodeInfo): Status | undefined {
    const counted = readState<AffinityState>(state, filterKey);
    const labels = node.metadata.labels ?? {};
    if (!isNear(counted, pod, labels)) return unresolvable("node(s) didn't match pod affinity rules");
    if (counted.requiredAnti.some(({ topologyKey }) => countAt(counted.away, topologyKey, labels) > 0))
      return unschedulable("node(s) didn't match pod anti-affinity rules");
    for (const key of counted.refusing.keys())
      if (countAt(counted.refusing, key, labels) > 0)
        return unschedulable("node(s) didn't satisfy existing pods anti-affinity rules");
    return undefined;
  }

  *preScore(state: CycleState, pod: PodInfo, _: readonly NodeInfo[], snapshot: ClusterSnapshot): Steps<Status | undefined> {
    const { hardPodAffinityWeight } = this.#options;
    const { parseError } = pod.affinity ?? {};
    if (parseError !== undefined) return { code: "Error", reasons: [`parsing pod: ${parseError}`] };
    const preferred = (pod.affinity?.preferred ?? []).map((term) => this.#resolve(term));
    const preferredAnti = (pod.affinity?.preferredAnti ?? []).map((term) => this.#resolve(term));
    const labels = this.#labelsOf(pod.pod.metadata.namespace);
    const counts = new TopologyCounts();
    const add = (terms: readonly WeightedAffinityTerm[], to: PodInfo, node: NodeInfo, sign: 1 | -1, of?: Labels): void => {
      for (const term of terms) if (matchesAffinityTerm(term, to.pod, of)) count(counts, term, node, sign * term.weight);
    };
    const pause = pauses();
    const hasWishes = preferred.length > 0 || preferredAnti.length > 0;
    for (const node of hasWishes ? snapshot.nodes : snapshot.havingAffinity) {
      for (const other of hasWishes ? node.pods.values() : node.podsWithAffinity) {
        add(preferred, other, node, 1);
        add(preferredAnti, other, node, -1);
        if (pause(preferred.length + preferredAnti.length)) yield;
        if (other.affinity === undefined) continue;
        // An existing pod's required affinity counts as a preference for the incoming pod.
        if (hardPodAffinityWeight > 0)
          add(
            other.affinity.required.map((term) => ({ ...term, weight: hardPodAffinityWeight })),
            pod,
            node,
            1,
            labels,
          );
        add(other.affinity.preferred, pod, node, 1, labels);
        add(other.affinity.preferredAnti, pod, node, -1, labels);
        if (pause(other.affinity.required.length + other.affinity.preferred.length + other.affinity.preferredAnti.length)) yield;
      }
    }
    state.set(scoreKey, counts);
    return undefined;
  }

  score(state: CycleState, _: PodInfo, { node }: NodeInfo): number {
    const counts = readState<TopologyCounts>(state, scoreKey);
    let score = 0;
    for (const key of counts.keys()) score += countAt(counts, key, node.metadata.labels ?? {});
    return score;
  }

  normalize(state: CycleState, _: PodInfo, scores: number[]): void {
    if (readState<TopologyCounts>(state, scoreKey).empty) return;
    const least = scores.reduce((min, score) => Math.min(min, score), Number.POSITIVE_INFINITY);
    const most = scores.reduce((max, score) => Math.max(max, score), Number.NEGATIVE_INFINITY);
    const range = most - least;
    for (const [i, score] of scores.entries()) scores[i] = range > 0 ? Math.trunc(maxNodeScore * ((score - least) / range)) : 0;
  }

  #labelsOf(namespace: string | undefined): Labels | undefined {
    return this.#namespaceLister === undefined ? undefined : (this.#namespaceLister.get(namespace ?? "")?.metadata.labels ?? {});
  }

  /** Resolves namespaceSelector to names, once instead of for each pod. An empty selector matches all and is kept. */
  #resolve<T extends AffinityTerm>(term: T): T {
    if (this.#namespaceLister === undefined) return { ...term, namespaceSelector: LabelSelector.nothing };
    if (term.namespaceSelector === LabelSelector.nothing || term.namespaceSelector.empty) return term;
    const selected = this.#namespaceLister.select(term.namespaceSelector).map(({ metadata }) => metadata.name ?? "");
    return { ...term, namespaces: new Set([...term.namespaces, ...selected]), namespaceSelector: LabelSelector.nothing };
  }
}

function isNear({ required, near }: AffinityState, pod: PodInfo, labels: Labels): boolean {
  let found = true;
  for (const { topologyKey } of required) {
    const value = labelOf(labels, topologyKey);
    if (value === undefined) return false;
    if ((near.get(topologyKey, value) ?? 0) <= 0) found = false;
  }
  // When no pod matches yet, a pod that matches its own terms is allowed; else the first of such pods could never start.
  return found || (near.empty && matchesAll(required, pod));
}

function countAt(counts: TopologyCounts, key: string, labels: Labels): number {
  const value = labelOf(labels, key);
  return value === undefined ? 0 : (counts.get(key, value) ?? 0);
}
