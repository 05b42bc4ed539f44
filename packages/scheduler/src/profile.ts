import { atOnce, type Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { isOneOf, keysOf, tableOf } from "@coxswain/apimachinery/process/narrowing/keys";
import type { NodeInfo, PodInfo } from "./cache/node-info.ts";
import { addPod, cloneNodeInfo } from "./cache/node-info.ts";
import type { ClusterSnapshot } from "./cache/snapshot.ts";
import { type PluginSets, pluginNames } from "./config/plugin-sets.ts";
import { allEvents, type ClusterEvent, covers } from "./framework/cluster-event.ts";
import { type CycleState, cloneState } from "./framework/cycle-state.ts";
import type { PluginTimer } from "./framework/cycle-timer.ts";
import { type ExtensionPoint, extensionPoints, type Plugin, type QueuedPodView } from "./framework/extension-points.ts";
import type { Nominator } from "./framework/nominator.ts";
import { PluginError, type Status } from "./framework/status.ts";

/** The plugins for pods of one scheduler name, by extension point in execution order. */
export interface Profile {
  readonly schedulerName: string;
  readonly plugins: readonly Plugin[];
  readonly at: Readonly<Record<ExtensionPoint, readonly Plugin[]>>;
  readonly weights: ReadonlyMap<string, number>;
}

/** The sum of all weights times the highest score has to fit an int64. Source: framework.MaxTotalScore */
const maxTotalScore = 2n ** 63n - 1n;

/**
 * Resolves the plugins of each extension point: first those enabled for the point, then those of `multiPoint` that
 * implement it and are neither enabled nor disabled there.
 * @param make creates a plugin by name; undefined for an unknown name
 * @throws Error for an unknown plugin, one that does not implement the point, duplicates, or missing queueSort or bind plugins
 * Source: pkg/scheduler/framework/runtime/framework.go NewFramework, expandMultiPointPlugins
 */
export function newProfile(schedulerName: string, sets: PluginSets, make: (name: string) => Plugin | undefined): Profile {
  const known = new Map<string, Plugin>();
  for (const name of pluginNames(sets)) {
    const plugin = make(name);
    if (plugin !== undefined) known.set(name, plugin);
  }
  const at = tableOf(keysOf(extensionPoints), (point) => pluginsAt(point, sets, known));
  if (at.queueSort.length !== 1)
    throw new Error(`one queue sort plugin required for profile with scheduler name ${JSON.stringify(schedulerName)}`);
  const weights = weightsOf(sets, known);
  if (at.bind.length === 0) throw new Error("at least one bind plugin is needed");
  return { schedulerName, plugins: [...known.values()], at, weights };
}

function pluginsAt(point: ExtensionPoint, sets: PluginSets, known: ReadonlyMap<string, Plugin>): Plugin[] {
  const { method, type } = extensionPoints[point];
  const plugins = new Map<string, Plugin>();
  const take = (name: string, plugin: Plugin): void => {
    if (plugins.has(name)) throw new Error(`plugin ${JSON.stringify(name)} already registered as ${JSON.stringify(type)}`);
    plugins.set(name, plugin);
  };
  const find = (name: string): Plugin => {
    const plugin = known.get(name);
    if (plugin === undefined) throw new Error(`${type} ${JSON.stringify(name)} does not exist`);
    return plugin;
  };
  const takesPart = (plugin: Plugin): boolean => plugin[method] !== undefined || isOneOf(plugin.idleAt ?? [], point);
  const { enabled, disabled } = sets[point];
  for (const { name } of enabled) {
    const plugin = find(name);
    if (!takesPart(plugin)) throw new Error(`plugin ${JSON.stringify(name)} does not extend ${type} plugin`);
    take(name, plugin);
  }
  const isDisabled = new Set(disabled.map(({ name }) => name));
  if (isDisabled.has("*")) return [...plugins.values()];
  const isEnabled = new Set(enabled.map(({ name }) => name));
  for (const { name } of sets.multiPoint.enabled) {
    const plugin = find(name);
    if (takesPart(plugin) && !isDisabled.has(name) && !isEnabled.has(name)) take(name, plugin);
  }
  return [...plugins.values()];
}

function weightsOf(sets: PluginSets, known: ReadonlyMap<string, Plugin>): Map<string, number> {
  const weights = new Map<string, number>();
  let total = 0n;
  for (const { name, weight } of [...sets.score.enabled, ...sets.multiPoint.enabled]) {
    if (known.get(name)?.score === undefined || weights.has(name)) continue; // `idleAt` plugins do not score
    weights.set(name, weight || 1);
    total += BigInt(weight || 1) * 100n;
    if (total > maxTotalScore) throw new Error("total score of Score plugins could overflow");
  }
  return weights;
}

/** The order of the profile's queue sort plugin. */
export function compareWith({ at }: Profile): (a: QueuedPodView, b: QueuedPodView) => number {
  const [sorter] = at.queueSort;
  return (a, b) => sorter?.compare?.(a, b) ?? 0;
}

/** @returns the first rejection, with the name of its plugin. @throws PluginError for a Status with code Error */
export function runPreFilter(profile: Profile, state: CycleState, pod: PodInfo, snapshot: ClusterSnapshot): Status | undefined {
  return atOnce(runningPreFilter(profile, state, pod, snapshot));
}

/** As `runPreFilter`, in steps. */
export function* runningPreFilter(
  profile: Profile,
  state: CycleState,
  pod: PodInfo,
  snapshot: ClusterSnapshot,
  timer?: PluginTimer,
): Steps<Status | undefined> {
  for (const plugin of profile.at.preFilter) {
    const begin = timer?.now() ?? 0;
    const outcome = plugin.preFilter?.(state, pod, snapshot);
    const status = isInSteps(outcome) ? yield* outcome : outcome;
    timer?.plugin(plugin.name, "PreFilter", status, begin);
    if (status !== undefined) return refusalOf(plugin, "PreFilter", status);
  }
  return undefined;
}

const isInSteps = (outcome: Steps<Status | undefined> | Status | undefined): outcome is Steps<Status | undefined> =>
  outcome !== undefined && "next" in outcome;

/** Nodes that are compared with a small pod between two yields; a large pod yields after each. */
const nodesPerStep = 128;

/** Number of nodes after which a loop over nodes yields. */
export const nodesPerStepFor = ({ isLarge }: PodInfo): number => (isLarge ? 1 : nodesPerStep);

/** @returns the plugin's status with its name. @throws PluginError for a status with code Error */
function refusalOf({ name }: Plugin, point: "PreFilter" | "Filter", status: Status): Status {
  const refusal = { ...status, plugin: name };
  if (status.code === "Error") throw new PluginError(point, refusal);
  return refusal;
}

/** @throws PluginError */
export function runFilters(
  filters: readonly Plugin[],
  state: CycleState,
  pod: PodInfo,
  node: NodeInfo,
  timer?: PluginTimer,
): Status | undefined {
  let begin = timer?.now() ?? 0;
  for (const plugin of filters) {
    const status = plugin.filter?.(state, pod, node);
    if (timer !== undefined) begin = timer.plugin(plugin.name, "Filter", status, begin);
    if (status !== undefined) return refusalOf(plugin, "Filter", status);
  }
  return undefined;
}

/** Number of nodes on which a sampled cycle measures the filters: reading the clock takes longer than most of them. */
const mostMeasured = 8;

/** Runs the filters for one pod on one node after the other; without those that accept it on every node, unless they are measured. */
export class NodeFilter {
  readonly #profile: Profile;
  readonly #state: CycleState;
  readonly #pod: PodInfo;
  readonly #nominator: Nominator;
  readonly #timer: PluginTimer | undefined;
  readonly #needed: readonly Plugin[];
  #measured = 0;

  /** @param state as preFilter left it; pods may be removed from it afterwards, and put back, in a simulation */
  constructor(profile: Profile, state: CycleState, pod: PodInfo, nominator: Nominator, timer?: PluginTimer) {
    this.#profile = profile;
    this.#state = state;
    this.#pod = pod;
    this.#nominator = nominator;
    this.#timer = timer;
    this.#needed = neededFilters(profile, state, pod);
  }

  /**
   * Runs the filters with the pods added that are nominated to this node and have equal or higher priority. When they
   * pass, runs them again without these pods: pod affinity must not depend on a nominated pod that may never arrive.
   * @throws PluginError
   * Source: RunFilterPluginsWithNominatedPods
   */
  refusal(node: NodeInfo): Status | undefined {
    const timer = this.#measured < mostMeasured ? this.#timer : undefined;
    if (timer !== undefined) this.#measured++;
    const state = this.#state;
    const filters = timer === undefined ? this.#needed : this.#profile.at.filter;
    const beside = besideNominated(this.#profile, { state, node }, this.#pod, this.#nominator);
    return (
      (beside && runFilters(this.#profile.at.filter, beside.state, this.#pod, beside.node, timer)) ??
      runFilters(filters, state, this.#pod, node, timer)
    );
  }
}

/** The filters that may refuse the pod on some node. @param state as preFilter left it */
export function neededFilters({ at: { filter } }: Profile, state: CycleState, pod: PodInfo): Plugin[] {
  return filter.filter((plugin) => plugin.mayRefuse?.(state, pod) !== false);
}

/** A node, and the state of the cycle in which the pod is compared with it. */
export interface Trial {
  readonly state: CycleState;
  readonly node: NodeInfo;
}

/** A copy with the pods added that are nominated to the node and have at least the pod's priority; undefined when there are none. */
export function besideNominated(
  { at: { preFilter } }: Profile,
  { state, node }: Trial,
  pod: PodInfo,
  nominator: Nominator,
): Trial | undefined {
  const nominated = nominator.onNode(node.name);
  if (nominated.length === 0) return undefined;
  const priority = pod.pod.spec.priority ?? 0;
  const present = nominated.filter(
    (other) => (other.pod.spec.priority ?? 0) >= priority && other.pod.metadata.uid !== pod.pod.metadata.uid,
  );
  if (present.length === 0) return undefined;
  const beside = { state: cloneState(state), node: cloneNodeInfo(node) };
  for (const other of present) {
    addPod(beside.node, other);
    for (const plugin of preFilter) plugin.addPod?.(beside.state, pod, other, beside.node);
  }
  return beside;
}

/** @throws PluginError */
export function* runPreScore(
  profile: Profile,
  state: CycleState,
  pod: PodInfo,
  nodes: readonly NodeInfo[],
  snapshot: ClusterSnapshot,
  timer?: PluginTimer,
): Steps<void> {
  for (const plugin of profile.at.preScore) {
    const begin = timer?.now() ?? 0;
    const outcome = plugin.preScore?.(state, pod, nodes, snapshot);
    const status = isInSteps(outcome) ? yield* outcome : outcome;
    timer?.plugin(plugin.name, "PreScore", status, begin);
    if (status !== undefined) throw new PluginError("PreScore", { ...status, plugin: plugin.name });
  }
}

/** @returns weighted sums of the plugins' scores; element i belongs to `nodes[i]` */
export function* scoreNodes(
  profile: Profile,
  state: CycleState,
  pod: PodInfo,
  nodes: readonly NodeInfo[],
  snapshot: ClusterSnapshot,
  timer?: PluginTimer,
): Steps<number[]> {
  const totals = new Array<number>(nodes.length).fill(0);
  const perStep = nodesPerStepFor(pod);
  for (const plugin of profile.at.score) {
    const begin = timer?.now() ?? 0;
    const weight = profile.weights.get(plugin.name) ?? 0;
    const common = plugin.commonScore?.(state, pod, nodes, snapshot);
    if (common !== undefined) {
      timer?.plugin(plugin.name, "Score", undefined, begin);
      for (let i = 0; i < totals.length; i++) totals[i] = totals[i]! + weight * common;
      continue;
    }
    const scores: number[] = [];
    for (const node of nodes) {
      scores.push(plugin.score?.(state, pod, node, snapshot) ?? 0);
      if (scores.length % perStep === 0) yield;
    }
    plugin.normalize?.(state, pod, scores, nodes);
    timer?.plugin(plugin.name, "Score", undefined, begin);
    for (let i = 0; i < totals.length; i++) totals[i] = totals[i]! + weight * scores[i]!;
  }
  return totals;
}

/** Events that at least one plugin of the profiles is registered for. */
export function interestsOf(profiles: readonly Profile[]): ReadonlySet<ClusterEvent> {
  return new Set(profiles.flatMap(({ plugins }) => plugins.flatMap(({ wakeUpOn = allEvents }) => wakeUpOn)));
}

/** @returns whether an event may resolve a plugin's rejections; always true for an unknown plugin. Results are cached */
export function newInterests(profiles: readonly Profile[]): (plugin: string, event: ClusterEvent) => boolean {
  const answers = new Map<string, boolean>();
  const decide = (name: string, event: ClusterEvent): boolean => {
    const known = profiles.flatMap((profile) => profile.plugins.filter((plugin) => plugin.name === name));
    return known.length === 0 || known.some(({ wakeUpOn = allEvents }) => wakeUpOn.some((wanted) => covers(wanted, event)));
  };
  // Called for every waiting pod on each event.
  return (plugin, event) => {
    const key = `${plugin} ${event}`;
    const answer = answers.get(key) ?? decide(plugin, event);
    answers.set(key, answer);
    return answer;
  };
}
