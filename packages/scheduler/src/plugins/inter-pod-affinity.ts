import type { Lister } from "@coxswain/apimachinery/informers/lister";
import { hasManyValues } from "@coxswain/apimachinery/objects/meta/deep-equal";
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
import { NodeTallies, type Share } from "./node-tallies.ts";
import type { PluginContext } from "./plugin-context.ts";
import { parsed, TopologyCounts } from "./topology-counts.ts";

type Labels = Readonly<Record<string, string>>;

/** Matching pods by topology domain. Namespace selectors of the incoming pod's terms are resolved to names. */
class AffinityState implements Cloneable {
  readonly required: readonly AffinityTerm[];
  readonly requiredAnti: readonly AffinityTerm[];
  readonly namespaceLabels: Labels | undefined;
  /** Existing pods that match all affinity terms of the incoming pod. */
  readonly near: TopologyCounts;
  /** Existing pods that match an anti-affinity term of the incoming pod. */
  readonly away: TopologyCounts;
  /** Existing pods with an anti-affinity term that matches the incoming pod. */
  readonly refusing: TopologyCounts;

  constructor(
    wishes: Pick<AffinityState, "required" | "requiredAnti" | "namespaceLabels">,
    counts: Pick<AffinityState, "near" | "away" | "refusing">,
  ) {
    ({ required: this.required, requiredAnti: this.requiredAnti, namespaceLabels: this.namespaceLabels } = wishes);
    ({ near: this.near, away: this.away, refusing: this.refusing } = counts);
  }

  clone(): AffinityState {
    return new AffinityState(this, {
      near: TopologyCounts.copyOf(this.near),
      away: TopologyCounts.copyOf(this.away),
      refusing: TopologyCounts.copyOf(this.refusing),
    });
  }

  /** Counts a pod that is added to the node (1) or removed from it (-1) in a simulation. */
  change(pod: PodInfo, other: PodInfo, { node }: NodeInfo, by: 1 | -1): void {
    const add = (counts: TopologyCounts, { topologyKey }: AffinityTerm): void => {
      const value = labelOf(node.metadata.labels, topologyKey);
      if (value !== undefined) counts.add(topologyKey, value, by, true);
    };
    for (const term of other.affinity?.requiredAnti ?? [])
      if (matchesAffinityTerm(term, pod.pod, this.namespaceLabels)) add(this.refusing, term);
    if (matchesAll(this.required, other)) for (const term of this.required) add(this.near, term);
    for (const term of this.requiredAnti) if (matchesAffinityTerm(term, other.pod)) add(this.away, term);
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

/** The terms' counts on a node as its shares, by the node's labels. */
function sharesAt({ node }: NodeInfo, counted: ReadonlyMap<AffinityTerm, number>): Share[] {
  const shares: Share[] = [];
  for (const [{ topologyKey }, count] of counted) {
    const value = labelOf(node.metadata.labels, topologyKey);
    if (value !== undefined && count !== 0) shares.push([topologyKey, value, count]);
  }
  return shares;
}

const increase = (counted: Map<AffinityTerm, number>, term: AffinityTerm, by: number): void =>
  void counted.set(term, (counted.get(term) ?? 0) + by);

/** Equal for terms that select the same pods and domains. */
const textOf = ({
  namespaces,
  namespaceSelector,
  selector,
  topologyKey,
  weight,
}: AffinityTerm & { weight?: number }): unknown[] => [
  [...namespaces],
  parsed(namespaceSelector).text,
  parsed(selector).text,
  topologyKey,
  weight,
];

/** Keys of kept counts contain labels and namespaces; with more of them, counts are not kept. */
const mostKeyed = 64;

/**
 * Equal for pods that get the same counts: their labels, those of their namespace, and their own terms that are counted.
 * @returns undefined for a pod whose counts are not kept
 */
function keyOf(
  what: string,
  pod: PodInfo,
  namespaceLabels: Labels | undefined,
  ...own: readonly (readonly AffinityTerm[])[]
): string | undefined {
  const { namespace, labels } = pod.pod.metadata;
  if (pod.isLarge || hasManyValues([labels, namespaceLabels], mostKeyed)) return undefined;
  if (own.some((terms) => terms.some(({ namespaces }) => namespaces.size > mostKeyed))) return undefined;
  return JSON.stringify([what, namespace, labels ?? null, namespaceLabels ?? null, ...own.map((terms) => terms.map(textOf))]);
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
  readonly #tallies = new NodeTallies();

  constructor(context: Pick<PluginContext, "informers" | "gates">, options: PluginArgs["InterPodAffinity"]) {
    this.#options = options;
    const { gates, informers } = context;
    this.#selectsNamespaces = gates.enabled("PodAffinityNamespaceSelector");
    this.#namespaceLister = this.#selectsNamespaces ? informers.for<Namespace>(namespaces).lister : undefined;
  }

  *preFilter(state: CycleState, pod: PodInfo, snapshot: ClusterSnapshot): Steps<Status | undefined> {
    const { required = [], requiredAnti = [], parseError } = pod.affinity ?? {};
    if (parseError !== undefined) return unresolvable(`parsing pod: ${parseError}`);
    const wishes = {
      required: required.map((term) => this.#resolve(term)),
      requiredAnti: requiredAnti.map((term) => this.#resolve(term)),
      namespaceLabels: this.#labelsOf(pod.pod.metadata.namespace),
    };
    const refusing = snapshot.hasRequiredAntiAffinity()
      ? yield* this.#countRefusals(pod, wishes.namespaceLabels, snapshot)
      : new TopologyCounts();
    const near = yield* this.#countPods("near", pod, wishes.required, true, snapshot);
    const away = yield* this.#countPods("away", pod, wishes.requiredAnti, false, snapshot);
    state.set(filterKey, new AffinityState(wishes, { near, away, refusing }));
    return undefined;
  }

  /** Existing pods with an anti-affinity term that matches the pod. */
  #countRefusals(pod: PodInfo, namespaceLabels: Labels | undefined, snapshot: ClusterSnapshot): Steps<TopologyCounts> {
    const pause = pauses();
    return this.#tallies.count(
      keyOf("refusing", pod, namespaceLabels),
      snapshot,
      () => snapshot.havingRequiredAntiAffinity(),
      function* (node) {
        const counted = new Map<AffinityTerm, number>();
        for (const { affinity } of node.podsWithAffinity) {
          const terms = affinity?.requiredAnti ?? [];
          for (const term of terms) if (matchesAffinityTerm(term, pod.pod, namespaceLabels)) increase(counted, term, 1);
          if (pause(terms.length)) yield;
        }
        return sharesAt(node, counted);
      },
    );
  }

  /** Existing pods that match each of the terms, or all of them. */
  *#countPods(
    what: string,
    pod: PodInfo,
    terms: readonly AffinityTerm[],
    all: boolean,
    snapshot: ClusterSnapshot,
  ): Steps<TopologyCounts> {
    if (terms.length === 0) return new TopologyCounts();
    const pause = pauses();
    return yield* this.#tallies.count(
      keyOf(what, pod, undefined, terms),
      snapshot,
      () => snapshot.nodes,
      function* (node) {
        const counted = new Map<AffinityTerm, number>();
        for (const other of node.pods.values()) {
          const matchesOne = (term: AffinityTerm): boolean => matchesAffinityTerm(term, other.pod);
          if (!all) for (const term of terms) if (matchesOne(term)) increase(counted, term, 1);
          if (all && terms.every(matchesOne)) for (const term of terms) increase(counted, term, 1);
          if (pause(terms.length)) yield;
        }
        return sharesAt(node, counted);
      },
    );
  }

  addPod(state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo): void {
    readState<AffinityState>(state, filterKey).change(pod, other, node, 1);
  }

  removePod(state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo): void {
    readState<AffinityState>(state, filterKey).change(pod, other, node, -1);
  }

  mayRefuse(state: CycleState): boolean {
    const { required, requiredAnti, refusing } = readState<AffinityState>(state, filterKey);
    return required.length > 0 || requiredAnti.length > 0 || !refusing.empty;
  }

  filter(state: CycleState, pod: PodInfo, { node }: NodeInfo): Status | undefined {
    const counted = readState<AffinityState>(state, filterKey);
    const labels = node.metadata.labels ?? {};
    if (!isNear(counted, pod, labels)) return unresolvable("node(s) didn't match pod affinity rules");
    if (counted.away.hasAnyAt(labels)) return unschedulable("node(s) didn't match pod anti-affinity rules");
    if (counted.refusing.hasAnyAt(labels)) return unschedulable("node(s) didn't satisfy existing pods anti-affinity rules");
    return undefined;
  }

  *preScore(state: CycleState, pod: PodInfo, _: readonly NodeInfo[], snapshot: ClusterSnapshot): Steps<Status | undefined> {
    const { hardPodAffinityWeight } = this.#options;
    const { parseError } = pod.affinity ?? {};
    if (parseError !== undefined) return { code: "Error", reasons: [`parsing pod: ${parseError}`] };
    const preferred = (pod.affinity?.preferred ?? []).map((term) => this.#resolve(term));
    const preferredAnti = (pod.affinity?.preferredAnti ?? []).map((term) => this.#resolve(term));
    const labels = this.#labelsOf(pod.pod.metadata.namespace);
    const wishes = [...preferred, ...preferredAnti];
    const hasWishes = wishes.length > 0;
    if (!hasWishes && !snapshot.hasAffinity()) {
      state.set(scoreKey, new TopologyCounts());
      return undefined;
    }
    const key = keyOf("score", pod, labels, preferred, preferredAnti);
    const pause = pauses();
    const nodes = (): readonly NodeInfo[] => (hasWishes ? snapshot.nodes : snapshot.havingAffinity());
    const counts = yield* this.#tallies.count(key, snapshot, nodes, function* (node) {
      const counted = new Map<AffinityTerm, number>();
      const add = (terms: readonly WeightedAffinityTerm[], to: PodInfo, sign: 1 | -1, of?: Labels): void => {
        for (const term of terms) if (matchesAffinityTerm(term, to.pod, of)) increase(counted, term, sign * term.weight);
      };
      for (const other of hasWishes ? node.pods.values() : node.podsWithAffinity) {
        add(preferred, other, 1);
        add(preferredAnti, other, -1);
        if (pause(wishes.length)) yield;
        if (other.affinity === undefined) continue;
        // An existing pod's required affinity counts as a preference for the incoming pod.
        for (const term of hardPodAffinityWeight > 0 ? other.affinity.required : [])
          if (matchesAffinityTerm(term, pod.pod, labels)) increase(counted, term, hardPodAffinityWeight);
        add(other.affinity.preferred, pod, 1, labels);
        add(other.affinity.preferredAnti, pod, -1, labels);
        if (pause(other.affinity.required.length + other.affinity.preferred.length + other.affinity.preferredAnti.length)) yield;
      }
      return sharesAt(node, counted);
    });
    state.set(scoreKey, counts);
    return undefined;
  }

  commonScore(state: CycleState): number | undefined {
    return readState<TopologyCounts>(state, scoreKey).empty ? 0 : undefined;
  }

  score(state: CycleState, _: PodInfo, { node }: NodeInfo): number {
    return readState<TopologyCounts>(state, scoreKey).sumAt(node.metadata.labels ?? {});
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
