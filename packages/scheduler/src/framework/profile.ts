import type { NodeInfo, PodInfo } from "../cache/node-info.ts";
import type { ClusterSnapshot } from "../cache/snapshot.ts";
import type { CycleState } from "./cycle-state.ts";
import type { ClusterEvent, Plugin, QueuedPodView } from "./extension-points.ts";
import type { Status } from "./status.ts";

/** The plugins that decide for the pods of one scheduler name. */
export interface Profile {
  readonly schedulerName: string;
  readonly plugins: readonly Plugin[];
  readonly weights: Readonly<Record<string, number>>;
}

export function compareWith(profile: Profile): (a: QueuedPodView, b: QueuedPodView) => number {
  const sorter = profile.plugins.find((plugin) => plugin.compare !== undefined);
  if (sorter === undefined) throw new Error(`profile ${profile.schedulerName} has no plugin that sorts the queue`);
  return (a, b) => sorter.compare?.(a, b) ?? 0;
}

/** The first refusal, with the name of who refused. */
export function runPreFilter(profile: Profile, state: CycleState, pod: PodInfo, snapshot: ClusterSnapshot): Status | undefined {
  for (const plugin of profile.plugins) {
    const status = plugin.preFilter?.(state, pod, snapshot);
    if (status !== undefined) return { ...status, plugin: plugin.name };
  }
  return undefined;
}

export function runFilters(profile: Profile, state: CycleState, pod: PodInfo, node: NodeInfo): Status | undefined {
  for (const plugin of profile.plugins) {
    const status = plugin.filter?.(state, pod, node);
    if (status !== undefined) return { ...status, plugin: plugin.name };
  }
  return undefined;
}

/** Weighted sums, in the order of the nodes. */
export function scoreNodes(
  profile: Profile,
  state: CycleState,
  pod: PodInfo,
  nodes: readonly NodeInfo[],
  snapshot: ClusterSnapshot,
): number[] {
  const totals = new Array<number>(nodes.length).fill(0);
  for (const plugin of profile.plugins) plugin.preScore?.(state, pod, nodes);
  for (const plugin of profile.plugins) {
    const weight = profile.weights[plugin.name] ?? 0;
    if (plugin.score === undefined || weight === 0) continue;
    const scores = nodes.map((node) => plugin.score?.(state, pod, node, snapshot) ?? 0);
    plugin.normalize?.(state, pod, scores);
    for (let i = 0; i < totals.length; i++) totals[i] = (totals[i] as number) + weight * (scores[i] as number);
  }
  return totals;
}

/** May this event lift a refusal by the plugin? Unknown plugins and those that do not say: yes. */
export function mayHelp(profiles: readonly Profile[], name: string, event: ClusterEvent): boolean {
  const known = profiles.flatMap((profile) => profile.plugins.filter((plugin) => plugin.name === name));
  return (
    known.length === 0 || known.some(({ wakeUpOn }) => wakeUpOn === undefined || wakeUpOn.some((wanted) => covers(wanted, event)))
  );
}

function covers(wanted: ClusterEvent, event: ClusterEvent): boolean {
  const [wantedResource, wantedAction] = wanted.split("/");
  const [resource, action] = event.split("/");
  return (
    [wantedResource, resource].includes("*") ||
    (wantedResource === resource && (wantedAction === action || [wantedAction, action].includes("*")))
  );
}
