import { parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { PodDisruptionBudget } from "@coxswain/apimachinery/objects/schema/kinds/policy/v1";
import { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { addPod, cloneNodeInfo, type NodeInfo, type PodInfo, removePod } from "../cache/node-info.ts";
import type { Victims } from "../extenders/extender.ts";
import { type CycleState, cloneState } from "../framework/cycle-state.ts";
import type { Nominator } from "../framework/nominator.ts";
import { type Status, unresolvable } from "../framework/status.ts";
import { besideNominated, neededFilters, type Profile, runFilters, type Trial } from "../profile.ts";

/** The pod's priority; 0 by default. */
export const priorityOf = (pod: Pod): number => pod.spec.priority ?? 0;

/**
 * Pure, in steps for large pods: the pods to evict from the node so that the pod fits, as few and of as low a priority as possible. Simulates the
 * removal of all pods of lower priority, then adds them back one by one while the pod still fits, starting with those
 * whose eviction would violate a disruption budget.
 * @param budgets not changed; `disruptionsAllowed` is counted down on a copy
 * @returns a Status when preemption does not make the pod fit
 * Source: pkg/scheduler/framework/plugins/defaultpreemption SelectVictimsOnNode
 */
export function* selectVictims(
  profile: Profile,
  state: CycleState,
  pod: PodInfo,
  node: NodeInfo,
  budgets: readonly PodDisruptionBudget[],
  nominator: Nominator,
): Steps<Victims | Status> {
  const isLarge = pod.isLarge;
  const lesser = [...node.pods.values()].filter((other) => priorityOf(other.pod) < priorityOf(pod.pod));
  if (lesser.length === 0)
    return unresolvable(`No victims found on node ${node.name} for preemptor pod ${pod.pod.metadata.name}`);
  const { preFilter, filter } = profile.at;
  const needed = neededFilters(profile, state, pod);
  const alone: Trial = { state: cloneState(state), node: cloneNodeInfo(node) };
  const trials = [alone];
  const take = (other: PodInfo): void => {
    for (const trial of trials) {
      removePod(trial.node, other.pod.metadata.uid ?? "");
      for (const plugin of preFilter) plugin.removePod?.(trial.state, pod, other, trial.node);
    }
  };
  const putBack = (other: PodInfo): void => {
    for (const trial of trials) {
      addPod(trial.node, other);
      for (const plugin of preFilter) plugin.addPod?.(trial.state, pod, other, trial.node);
    }
  };
  const refusal = (): Status | undefined => {
    for (const trial of trials) {
      const status = runFilters(trial === alone ? needed : filter, trial.state, pod, trial.node);
      if (status !== undefined) return status;
    }
    return undefined;
  };

  for (const other of lesser) take(other);
  const beside = besideNominated(profile, alone, pod, nominator);
  if (beside !== undefined) trials.unshift(beside);
  const status = refusal();
  if (status !== undefined) return status;
  const { violating, others } = splitByBudgets(
    lesser.toSorted((a, b) => compareImportance(a.pod, b.pod)),
    budgets,
  );
  const victims: Pod[] = [];
  let violations = 0;
  for (const other of [...violating, ...others]) {
    if (isLarge) yield;
    putBack(other);
    if (refusal() === undefined) continue;
    take(other);
    victims.push(other.pod);
    if (violating.includes(other)) violations++;
  }
  return { pods: victims, violations };
}

/** Negative when `a` has higher priority, or equal priority and started earlier. Source: pkg/scheduler/util MoreImportantPod */
export const compareImportance = (a: Pod, b: Pod): number => priorityOf(b) - priorityOf(a) || startOf(a) - startOf(b);

/** Start time in ms; a pod that has not started counts as the most recent. */
export function startOf({ status }: Pod): number {
  return (status?.startTime ? parseTime(status.startTime) : undefined) ?? Number.MAX_SAFE_INTEGER;
}

/** Splits pods by whether their eviction violates a budget; keeps the order. Source: filterPodsWithPDBViolation */
export function splitByBudgets(
  pods: readonly PodInfo[],
  budgets: readonly PodDisruptionBudget[],
): { violating: PodInfo[]; others: PodInfo[] } {
  const left = budgets.map(({ status }) => status?.disruptionsAllowed ?? 0);
  const selectors = budgets.map(({ spec }) => selectorOf(spec?.selector));
  const violating: PodInfo[] = [];
  const others: PodInfo[] = [];
  for (const info of pods) {
    const { metadata } = info.pod;
    let violates = false;
    for (const [i, { metadata: own, status }] of budgets.entries()) {
      const selector = selectors[i];
      if (own.namespace !== metadata.namespace || Object.keys(metadata.labels ?? {}).length === 0) continue;
      // Unlike the disruption controller, the scheduler treats an empty selector as matching no pod.
      if (selector === undefined || selector.empty || !selector.matches(metadata.labels)) continue;
      // The eviction API has already subtracted this pod from disruptionsAllowed.
      if (Object.hasOwn(status?.disruptedPods ?? {}, metadata.name ?? "")) continue;
      left[i] = left[i]! - 1;
      if (left[i] < 0) violates = true;
    }
    (violates ? violating : others).push(info);
  }
  return { violating, others };
}

function selectorOf(selector: Parameters<typeof LabelSelector.fromObject>[0]): LabelSelector | undefined {
  try {
    return LabelSelector.ofCached(selector);
  } catch {
    return undefined; // an invalid selector matches no pod
  }
}
