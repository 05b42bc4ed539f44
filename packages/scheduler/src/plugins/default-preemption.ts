import { isNotFound } from "@coxswain/apimachinery/errors/predicates";
import { keyOf } from "@coxswain/apimachinery/meta/object-key";
import type { Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { PodDisruptionBudget } from "@coxswain/apimachinery/schema/kinds/policy/v1";
import { podDisruptionBudgets, pods } from "@coxswain/apimachinery/schema/kinds/resources";
import type { NodeInfo, PodInfo } from "../cache/node-info.ts";
import type { ClusterSnapshot } from "../cache/snapshot.ts";
import type { PluginArgs } from "../config/plugin-args.ts";
import type { Extender, Victims } from "../extenders/extender.ts";
import type { CycleState } from "../framework/cycle-state.ts";
import type { Plugin, PostFilterResult } from "../framework/extension-points.ts";
import type { PluginContext } from "../framework/plugin-context.ts";
import { failed, fitMessage, type Status, unresolvable, unschedulable } from "../framework/status.ts";
import { clearNomination } from "../pod-status.ts";
import { pickNode } from "../preemption/pick-node.ts";
import { priorityOf, selectVictims } from "../preemption/victims.ts";

const name = "DefaultPreemption";

/**
 * When a pod fits nowhere: finds a node where it would if less important pods left, sends those away and keeps the place
 * for it by nomination.
 * Source: pkg/scheduler/framework/plugins/defaultpreemption, framework/preemption
 */
export function newDefaultPreemption(context: PluginContext, args: PluginArgs["DefaultPreemption"]): Plugin {
  const { client, informers, recorder, metrics, nominator, log, random } = context;
  const budgets = informers.for<PodDisruptionBudget>(podDisruptionBudgets).lister;
  const podLister = informers.for<Pod>(pods, { fieldSelector: "status.phase!=Succeeded,status.phase!=Failed" }).lister;

  const clear = async (pod: Pod): Promise<void> => {
    try {
      await clearNomination(client, pod);
    } catch (err) {
      if (!isNotFound(err)) log.error("cannot clear 'NominatedNodeName' field of pod", err, { pod: keyOf(pod) });
    }
  };

  /** Victims first, then the nominations of less important pods, which may not fit there any more. */
  const prepare = async (pod: Pod, nodeName: string, victims: readonly Pod[]): Promise<void> => {
    for (const victim of victims) {
      const { namespace, name: victimName = "" } = victim.metadata;
      await client.delete(pods, { namespace, name: victimName }).catch((err: unknown) => {
        if (!isNotFound(err)) throw err;
      });
      const message = `Preempted by ${keyOf(pod)} on node ${nodeName}`;
      recorder.event({ apiVersion: "v1", kind: "Pod", ...victim }, "Normal", "Preempted", message, {
        action: "Preempting",
        related: { apiVersion: "v1", kind: "Pod", ...pod },
      });
    }
    metrics.preempted(victims.length);
    for (const other of nominator.onNode(nodeName)) {
      if (priorityOf(other.pod) >= priorityOf(pod)) continue;
      nominator.delete(other.pod);
      await clear(other.pod);
    }
  };

  const preempt = async (
    state: CycleState,
    info: PodInfo,
    statuses: ReadonlyMap<string, Status>,
    snapshot: ClusterSnapshot,
  ): Promise<PostFilterResult> => {
    const pod = podLister.get(keyOf(info.pod));
    if (pod === undefined) throw new Error(`pod ${keyOf(info.pod)} is gone`);
    if (!mayPreempt(pod, statuses, snapshot)) return { status: unschedulable() };
    const possible = snapshot.nodes.filter(({ name: node }) => statuses.get(node)?.code !== "UnschedulableAndUnresolvable");
    if (possible.length === 0) {
      await clear(pod);
      return refused(snapshot, new Map());
    }
    const wanted = candidatesWanted(possible.length, args);
    const offset = Math.trunc(random() * possible.length);
    const trial = tryNodes(context, state, info, possible, offset, wanted, budgets.list());
    if (trial.candidates.size === 0) {
      const errors = [...trial.statuses.values()].filter(({ code }) => code === "Error");
      // Then nobody knows whether it would have helped.
      if (errors.length > 0) throw new Error(errors.flatMap(({ reasons }) => reasons).join(", "));
      return refused(snapshot, trial.statuses);
    }
    const agreed = await askExtenders(context.extenders, pod, trial.candidates, snapshot);
    const nodeName = pickNode(agreed);
    if (nodeName === undefined) return { status: unschedulable() };
    // Kept from here on, before anybody is sent away: nobody else is to take the place meanwhile.
    nominator.set(pod, nodeName);
    await prepare(pod, nodeName, agreed.get(nodeName)?.pods ?? []);
    return { nominatedNode: nodeName };
  };

  return {
    name,
    async postFilter(state, pod, statuses, snapshot) {
      metrics.preemptionAttempted();
      return preempt(state, pod, statuses, snapshot);
    },
  };
}

/** A nomination that did not come to anything is taken back. */
const refused = (snapshot: ClusterSnapshot, tried: ReadonlyMap<string, Status>): PostFilterResult => {
  const statuses = new Map<string, Status>();
  for (const { name: node } of snapshot.nodes)
    statuses.set(node, tried.get(node) ?? unresolvable("Preemption is not helpful for scheduling"));
  return { nominatedNode: "", status: unschedulable(fitMessage(snapshot.nodes.length, statuses)) };
};

/** Not while those it sent away before are still on their way out. Source: PodEligibleToPreemptOthers */
function mayPreempt(pod: Pod, statuses: ReadonlyMap<string, Status>, snapshot: ClusterSnapshot): boolean {
  if (pod.spec.preemptionPolicy === "Never") return false;
  const nominated = pod.status?.nominatedNodeName;
  if (!nominated || statuses.get(nominated)?.code === "UnschedulableAndUnresolvable") return true;
  for (const { pod: other } of snapshot.get(nominated)?.pods.values() ?? [])
    if (other.metadata.deletionTimestamp && priorityOf(other) < priorityOf(pod)) return false;
  return true;
}

/** How many candidates are enough to choose from. */
export function candidatesWanted(nodes: number, args: PluginArgs["DefaultPreemption"]): number {
  const share = Math.trunc((nodes * args.minCandidateNodesPercentage) / 100);
  return Math.min(Math.max(share, args.minCandidateNodesAbsolute), nodes);
}

/** Goes around from `offset` until there are enough, one of which violates no budget. */
function tryNodes(
  { nominator, profile }: PluginContext,
  state: CycleState,
  pod: PodInfo,
  nodes: readonly NodeInfo[],
  offset: number,
  wanted: number,
  budgets: readonly PodDisruptionBudget[],
): { candidates: Map<string, Victims>; statuses: Map<string, Status> } {
  const clean: [string, Victims][] = [];
  const violating: [string, Victims][] = [];
  const statuses = new Map<string, Status>();
  for (let i = 0; i < nodes.length; i++) {
    const node = nodes[(offset + i) % nodes.length] as NodeInfo;
    const outcome = trySelect(() => selectVictims(profile(), state, pod, node, budgets, nominator));
    if ("code" in outcome) statuses.set(node.name, outcome);
    // Then it would have fitted in the first place.
    else if (outcome.pods.length === 0)
      statuses.set(node.name, { code: "Error", reasons: [`expected at least one victim pod on node "${node.name}"`] });
    else (outcome.violations === 0 ? clean : violating).push([node.name, outcome]);
    if (clean.length > 0 && clean.length + violating.length >= wanted) break;
  }
  return { candidates: new Map([...clean.slice(0, wanted), ...violating.slice(0, wanted)]), statuses };
}

/** A plugin that fails on one node says nothing of the others. */
function trySelect(select: () => Victims | Status): Victims | Status {
  try {
    return select();
  } catch (err) {
    return failed(err);
  }
}

/** Each extender may strike candidates out. @throws what one throws that is not ignorable */
async function askExtenders(
  extenders: readonly Extender[],
  pod: Pod,
  candidates: ReadonlyMap<string, Victims>,
  snapshot: ClusterSnapshot,
): Promise<ReadonlyMap<string, Victims>> {
  let left = candidates;
  for (const extender of extenders) {
    if (left.size === 0) break;
    if (!extender.preempts || !extender.isInterested(pod)) continue;
    try {
      const agreed = new Map(await extender.preempt(pod, left, snapshot));
      for (const [node, { pods: victims }] of agreed) {
        if (victims.length > 0) continue;
        if (!extender.ignorable) throw new Error(`expected at least one victim pod on node ${JSON.stringify(node)}`);
        agreed.delete(node);
      }
      left = agreed;
    } catch (err) {
      if (!extender.ignorable) throw err;
    }
  }
  return left;
}
