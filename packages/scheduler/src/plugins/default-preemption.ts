import type { Client } from "@coxswain/apimachinery/client/client";
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { keyOf } from "@coxswain/apimachinery/objects/meta/object-key";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { PodDisruptionBudget } from "@coxswain/apimachinery/objects/schema/kinds/policy/v1";
import { podDisruptionBudgets, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { runSteps } from "@coxswain/apimachinery/process/event-loop/turns";
import type { NodeInfo, PodInfo } from "../cache/node-info.ts";
import type { ClusterSnapshot } from "../cache/snapshot.ts";
import type { PluginArgs } from "../config/plugin-args.ts";
import type { Extender, Victims } from "../extenders/extender.ts";
import type { CycleState } from "../framework/cycle-state.ts";
import type { Plugin, PostFilterResult } from "../framework/extension-points.ts";
import { failed, fitMessage, type Status, unresolvable, unschedulable } from "../framework/status.ts";
import { pickNode } from "../preemption/pick-node.ts";
import { priorityOf, selectVictims } from "../preemption/victims.ts";
import type { PluginContext } from "./plugin-context.ts";

const name = "DefaultPreemption";

/**
 * PostFilter plugin: finds a node where the pod fits after evicting pods of lower priority, deletes these and nominates
 * the pod to the node.
 * Source: pkg/scheduler/framework/plugins/defaultpreemption, framework/preemption
 */
export function newDefaultPreemption(context: PluginContext, args: PluginArgs["DefaultPreemption"]): Plugin {
  const { client, informers, recorder, metrics, nominator, statuses, log, random, turns } = context;
  const budgets = informers.for<PodDisruptionBudget>(podDisruptionBudgets).lister;
  const podLister = informers.for<Pod>(pods, { fieldSelector: "status.phase!=Succeeded,status.phase!=Failed" }).lister;

  /** Victims as the cache knows them, until it shows that they are going. */
  const leaving = new WeakSet<Pod>();

  const clear = async (pod: Pod): Promise<void> => {
    try {
      await statuses.clearNomination(pod);
    } catch (err) {
      if (!isNotFound(err)) log.error("cannot clear 'NominatedNodeName' field of pod", err, { pod: keyOf(pod) });
    }
  };

  /** Deletes the victims, then clears nominations of lower priority pods to the node: they may not fit there any more. */
  const prepare = async (pod: Pod, nodeName: string, victims: readonly Pod[]): Promise<void> => {
    for (const victim of victims) {
      await evict(client, victim);
      leaving.add(victim);
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
    if (!mayPreempt(pod, statuses, snapshot, leaving)) return { status: unschedulable() };
    const possible = snapshot.nodes.filter(({ name: node }) => statuses.get(node)?.code !== "UnschedulableAndUnresolvable");
    if (possible.length === 0) {
      await clear(pod);
      return refused(snapshot, new Map());
    }
    const count = candidateCount(possible.length, args);
    const offset = Math.trunc(random() * possible.length);
    const search = tryNodes(context, state, info, possible, offset, count, budgets.list());
    const trial = await runSteps(turns, search);
    if (trial.candidates.size === 0) {
      const errors = [...trial.statuses.values()].filter(({ code }) => code === "Error");
      // With errors it is unknown whether preemption would help; fail instead of clearing the nomination.
      if (errors.length > 0) throw new Error(errors.flatMap(({ reasons }) => reasons).join(", "));
      return refused(snapshot, trial.statuses);
    }
    const agreed = await callExtenders(context.extenders, pod, trial.candidates, snapshot);
    const nodeName = pickNode(agreed);
    if (nodeName === undefined) return { status: unschedulable() };
    // Deleted while the extenders were called: no victim is needed.
    if (podLister.get(keyOf(pod))?.metadata.uid !== pod.metadata.uid) throw new Error(`pod ${keyOf(pod)} is gone`);
    // Nominate before deleting victims, so that cycles that run meanwhile do not take the freed resources.
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

/** Deletes a victim; one that is gone already is no failure. */
async function evict(client: Client, { metadata: { namespace, name: victim = "" } }: Pod): Promise<void> {
  await client.delete(pods, { namespace, name: victim }).catch((err: unknown) => {
    if (!isNotFound(err)) throw err;
  });
}

/** Result when preemption does not help: clears an earlier nomination. */
const refused = (snapshot: ClusterSnapshot, tried: ReadonlyMap<string, Status>): PostFilterResult => {
  const statuses = new Map<string, Status>();
  for (const { name: node } of snapshot.nodes)
    statuses.set(node, tried.get(node) ?? unresolvable("Preemption is not helpful for scheduling"));
  return { nominatedNode: "", status: unschedulable(fitMessage(snapshot.nodes.length, statuses)) };
};

/** False while earlier victims are still terminating on the nominated node. Source: PodEligibleToPreemptOthers */
function mayPreempt(
  pod: Pod,
  statuses: ReadonlyMap<string, Status>,
  snapshot: ClusterSnapshot,
  leaving: Pick<WeakSet<Pod>, "has">,
): boolean {
  if (pod.spec.preemptionPolicy === "Never") return false;
  const nominated = pod.status?.nominatedNodeName;
  if (!nominated || statuses.get(nominated)?.code === "UnschedulableAndUnresolvable") return true;
  for (const { pod: other } of snapshot.get(nominated)?.pods.values() ?? [])
    if ((other.metadata.deletionTimestamp || leaving.has(other)) && priorityOf(other) < priorityOf(pod)) return false;
  return true;
}

/** Number of candidate nodes after which the search stops. */
export function candidateCount(nodes: number, args: PluginArgs["DefaultPreemption"]): number {
  const share = Math.trunc((nodes * args.minCandidateNodesPercentage) / 100);
  return Math.min(Math.max(share, args.minCandidateNodesAbsolute), nodes);
}

/** Nodes tried between two yields: each may have a hundred pods, with which the filters run one by one. */
const nodesPerTrial = 8;

/** Simulates, in steps, preemption on the nodes from `offset` on, until there are `count` candidates and one violates no budget. */
function* tryNodes(
  { nominator, profile }: PluginContext,
  state: CycleState,
  pod: PodInfo,
  nodes: readonly NodeInfo[],
  offset: number,
  count: number,
  budgets: readonly PodDisruptionBudget[],
): Steps<{ candidates: Map<string, Victims>; statuses: Map<string, Status> }> {
  const clean: [string, Victims][] = [];
  const violating: [string, Victims][] = [];
  const statuses = new Map<string, Status>();
  for (let i = 0; i < nodes.length; i++) {
    const node = nodes[(offset + i) % nodes.length]!;
    if (i % nodesPerTrial === nodesPerTrial - 1) yield;
    const outcome = yield* trySelect(selectVictims(profile(), state, pod, node, budgets, nominator));
    if ("code" in outcome) statuses.set(node.name, outcome);
    // Without victims the pod fits already, which contradicts the preceding filter result.
    else if (outcome.pods.length === 0)
      statuses.set(node.name, { code: "Error", reasons: [`expected at least one victim pod on node "${node.name}"`] });
    else (outcome.violations === 0 ? clean : violating).push([node.name, outcome]);
    if (clean.length > 0 && clean.length + violating.length >= count) break;
  }
  return { candidates: new Map([...clean.slice(0, count), ...violating.slice(0, count)]), statuses };
}

/** Turns an exception into a Status, so that a failure on one node does not end the search. */
function* trySelect(select: Steps<Victims | Status>): Steps<Victims | Status> {
  try {
    return yield* select;
  } catch (err) {
    return failed(err);
  }
}

/** Each extender may remove candidates. @throws the error of an extender that is not ignorable */
async function callExtenders(
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
