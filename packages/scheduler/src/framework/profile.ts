import type { NodeInfo, PodInfo } from "../cache/node-info.ts";
import { addPod, cloneNodeInfo } from "../cache/node-info.ts";
import type { ClusterSnapshot } from "../cache/snapshot.ts";
import { type PluginSets, pluginNames } from "../config/plugin-sets.ts";
import { allEvents, type ClusterEvent, covers } from "./cluster-event.ts";
import { type CycleState, cloneState } from "./cycle-state.ts";
import type { PluginTimer } from "./cycle-timer.ts";
import { type ExtensionPoint, extensionPoints, type Plugin, type QueuedPodView } from "./extension-points.ts";
import type { Nominator } from "./nominator.ts";
import { PluginError, type Status } from "./status.ts";

/** The plugins that decide for the pods of one scheduler name, at each point in the order they run. */
export interface Profile {
  readonly schedulerName: string;
  readonly plugins: readonly Plugin[];
  readonly at: Readonly<Record<ExtensionPoint, readonly Plugin[]>>;
  readonly weights: ReadonlyMap<string, number>;
}

/** The sum of all weights times the highest score has to fit an int64. Source: framework.MaxTotalScore */
const maxTotalScore = 2n ** 63n - 1n;

/**
 * Lays out at which points the configured plugins run: those named for a point first, then those of `multiPoint` that
 * take part there and that are neither named nor disabled.
 * @param make a plugin by its name; undefined for one that does not exist
 * @throws Error for names that do not exist or do not take part, for doubles, for a missing queue sort or bind
 * Source: pkg/scheduler/framework/runtime/framework.go NewFramework, expandMultiPointPlugins
 */
export function newProfile(schedulerName: string, sets: PluginSets, make: (name: string) => Plugin | undefined): Profile {
  const known = new Map<string, Plugin>();
  for (const name of pluginNames(sets)) {
    const plugin = make(name);
    if (plugin !== undefined) known.set(name, plugin);
  }
  const at = {} as Record<ExtensionPoint, readonly Plugin[]>;
  for (const point of Object.keys(extensionPoints) as ExtensionPoint[]) at[point] = pluginsAt(point, sets, known);
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
  const takesPart = (plugin: Plugin): boolean =>
    plugin[method] !== undefined || (plugin.idleAt as readonly string[] | undefined)?.includes(point) === true;
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
    if (known.get(name)?.score === undefined || weights.has(name)) continue; // an idle one scores nothing
    weights.set(name, weight || 1);
    total += BigInt(weight || 1) * 100n;
    if (total > maxTotalScore) throw new Error("total score of Score plugins could overflow");
  }
  return weights;
}

export function compareWith({ at }: Profile): (a: QueuedPodView, b: QueuedPodView) => number {
  const [sorter] = at.queueSort;
  return (a, b) => sorter?.compare?.(a, b) ?? 0;
}

/** The first refusal, with the name of who refused. @throws PluginError */
export function runPreFilter(
  profile: Profile,
  state: CycleState,
  pod: PodInfo,
  snapshot: ClusterSnapshot,
  timer?: PluginTimer,
): Status | undefined {
  for (const plugin of profile.at.preFilter) {
    const begin = timer?.now();
    const status = plugin.preFilter?.(state, pod, snapshot);
    timer?.plugin(plugin.name, "PreFilter", status, begin);
    if (status === undefined) continue;
    const refusal = { ...status, plugin: plugin.name };
    if (status.code === "Error") throw new PluginError("PreFilter", refusal);
    return refusal;
  }
  return undefined;
}

/** @throws PluginError */
export function runFilters(
  profile: Profile,
  state: CycleState,
  pod: PodInfo,
  node: NodeInfo,
  timer?: PluginTimer,
): Status | undefined {
  for (const plugin of profile.at.filter) {
    const begin = timer?.now();
    const status = plugin.filter?.(state, pod, node);
    timer?.plugin(plugin.name, "Filter", status, begin);
    if (status === undefined) continue;
    const refusal = { ...status, plugin: plugin.name };
    if (status.code === "Error") throw new PluginError("Filter", refusal);
    return refusal;
  }
  return undefined;
}

/**
 * The filters, with pods counted that wait for this node by nomination and are no less important; and again without
 * them, for some filters ask for a neighbour who may never come.
 * Source: RunFilterPluginsWithNominatedPods
 */
export function runFiltersWithNominated(
  profile: Profile,
  state: CycleState,
  pod: PodInfo,
  node: NodeInfo,
  nominator: Nominator,
  timer?: PluginTimer,
): Status | undefined {
  const priority = pod.pod.spec.priority ?? 0;
  const nominated = nominator
    .onNode(node.name)
    .filter((other) => (other.pod.spec.priority ?? 0) >= priority && other.pod.metadata.uid !== pod.pod.metadata.uid);
  if (nominated.length === 0) return runFilters(profile, state, pod, node, timer);
  const stateWith = cloneState(state);
  const nodeWith = cloneNodeInfo(node);
  for (const other of nominated) {
    addPod(nodeWith, other);
    for (const plugin of profile.at.preFilter) plugin.addPod?.(stateWith, pod, other, nodeWith);
  }
  return runFilters(profile, stateWith, pod, nodeWith, timer) ?? runFilters(profile, state, pod, node, timer);
}

/** @throws PluginError */
export function runPreScore(
  profile: Profile,
  state: CycleState,
  pod: PodInfo,
  nodes: readonly NodeInfo[],
  snapshot: ClusterSnapshot,
  timer?: PluginTimer,
): void {
  for (const plugin of profile.at.preScore) {
    const begin = timer?.now();
    const status = plugin.preScore?.(state, pod, nodes, snapshot);
    timer?.plugin(plugin.name, "PreScore", status, begin);
    if (status !== undefined) throw new PluginError("PreScore", { ...status, plugin: plugin.name });
  }
}

/** Weighted sums, in the order of the nodes. */
export function scoreNodes(
  profile: Profile,
  state: CycleState,
  pod: PodInfo,
  nodes: readonly NodeInfo[],
  snapshot: ClusterSnapshot,
  timer?: PluginTimer,
): number[] {
  const totals = new Array<number>(nodes.length).fill(0);
  for (const plugin of profile.at.score) {
    const begin = timer?.now();
    const weight = profile.weights.get(plugin.name) ?? 0;
    const scores = nodes.map((node) => plugin.score?.(state, pod, node, snapshot) ?? 0);
    plugin.normalize?.(state, pod, scores, nodes);
    timer?.plugin(plugin.name, "Score", undefined, begin);
    for (let i = 0; i < totals.length; i++) totals[i] = (totals[i] as number) + weight * (scores[i] as number);
  }
  return totals;
}

/** Which changes the plugins of these profiles wait for. */
export function interestsOf(profiles: readonly Profile[]): ReadonlySet<ClusterEvent> {
  return new Set(profiles.flatMap(({ plugins }) => plugins.flatMap(({ wakeUpOn = allEvents }) => wakeUpOn)));
}

/** Which events may lift a refusal by which plugin; anything helps with plugins that are not known. */
export function newInterests(profiles: readonly Profile[]): (plugin: string, event: ClusterEvent) => boolean {
  const answers = new Map<string, boolean>();
  const decide = (name: string, event: ClusterEvent): boolean => {
    const known = profiles.flatMap((profile) => profile.plugins.filter((plugin) => plugin.name === name));
    return known.length === 0 || known.some(({ wakeUpOn = allEvents }) => wakeUpOn.some((wanted) => covers(wanted, event)));
  };
  // Each event asks it of every pod that waits.
  return (plugin, event) => {
    const key = `${plugin} ${event}`;
    const answer = answers.get(key) ?? decide(plugin, event);
    answers.set(key, answer);
    return answer;
  };
}
