import { isConflict, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { Node, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { pods as podResource } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { ControllerContext } from "../../controller-context.ts";
import { deletePod, type NodeLifecycleContext, nodeEvent, patchNode } from "./context.ts";
import { type EvictionQueue, newEvictionQueue } from "./eviction-queue.ts";
import { conditionOf, type NodeHealth, statusOf } from "./health.ts";
import { notReadyTaint, unreachableTaint, withEvictionTaint } from "./taints.ts";
import { evictionRate, zoneOf, zoneState } from "./zone-eviction-rate.ts";

/**
 * Adds the node to the eviction queue, or removes it.
 * @param observed status of the Ready condition as reported by the node
 */
export async function updateEviction(
  ctx: NodeLifecycleContext,
  node: Node,
  observed: string,
  health: NodeHealth,
  signal: AbortSignal,
): Promise<void> {
  const name = node.metadata.name ?? "";
  const queue = queueOf(ctx, node);
  if (observed === "True") {
    queue.remove(name);
    ctx.evicted.delete(name);
    await setEvictionTaint(ctx, node, undefined, signal);
    return;
  }
  if (ctx.allFullyDisrupted) return;
  const key = observed === "Unknown" ? unreachableTaint : notReadyTaint;
  if (ctx.config.nodeLifecycle.taintManager) {
    // A node that has a NoExecute taint already gets the other one immediately; otherwise it is queued.
    const tainted = (node.spec?.taints ?? []).some(
      ({ effect, key: k }) => effect === "NoExecute" && (k === notReadyTaint || k === unreachableTaint),
    );
    if (tainted) await setEvictionTaint(ctx, node, key, signal);
    else queue.add(name);
    return;
  }
  const since = observed === "Unknown" ? health.seenAt : health.readyChangedAt;
  if (ctx.clock.monotonic() <= since + ctx.config.nodeLifecycle.podEvictionTimeoutMs) return;
  if (ctx.evicted.has(name)) await deleteAllPods(ctx, node, signal);
  else queue.add(name);
}

/** @returns false when the node has changed or was deleted since it was read */
async function setEvictionTaint(
  ctx: ControllerContext,
  node: Node,
  key: typeof notReadyTaint | typeof unreachableTaint | undefined,
  signal: AbortSignal,
): Promise<boolean> {
  const taints = withEvictionTaint(node, key, ctx.clock.now());
  if (taints === undefined) return true;
  try {
    await patchNode(ctx, node, { taints }, signal);
    return true;
  } catch (err) {
    if (!isConflict(err) && !isNotFound(err)) throw err;
    return false;
  }
}

/** Whether a node waits in one of the eviction queues. */
export function hasQueuedNodes({ evictions }: NodeLifecycleContext): boolean {
  return evictions.values().some((queue) => !queue.isEmpty);
}

/** Processes the eviction queues: taints the nodes, or deletes their Pods when the taint manager is off. */
export async function processEvictions(ctx: NodeLifecycleContext, signal: AbortSignal): Promise<void> {
  for (const queue of ctx.evictions.values()) {
    const name = queue.take(ctx.clock.monotonic());
    const node = name === undefined ? undefined : ctx.nodes.lister.get(name);
    if (name === undefined || node === undefined) continue;
    const ready = statusOf(conditionOf(node, "Ready"));
    if (ready === "True") continue; // recovered while queued
    let isDone = true;
    if (ctx.config.nodeLifecycle.taintManager)
      isDone = await setEvictionTaint(ctx, node, ready === "Unknown" ? unreachableTaint : notReadyTaint, signal);
    else {
      await deleteAllPods(ctx, node, signal);
      ctx.evicted.add(name);
    }
    if (isDone) ctx.metrics.evicted(zoneOf(node));
  }
}

/**
 * Deletes the node's Pods when the taint manager is off, except those of DaemonSets, which would be recreated. All get the
 * reason NodeLost.
 * @throws Error when a Pod has changed meanwhile, after the others were deleted
 * Source: pkg/controller/util/node/controller_utils.go DeletePods
 */
async function deleteAllPods(ctx: NodeLifecycleContext, node: Node, signal: AbortSignal): Promise<void> {
  const { name = "" } = node.metadata;
  const pods = ctx.podsOn(name);
  if (pods.length > 0) nodeEvent(ctx, node, "DeletingAllPods", `event: Deleting all Pods from Node ${name}.`);
  const conflicts: string[] = [];
  for (const pod of pods) {
    try {
      await setNodeLost(ctx, pod, name, signal);
    } catch (err) {
      if (isConflict(err)) {
        conflicts.push(pod.metadata.name ?? "");
        continue;
      }
      ctx.log.warn("Cannot set the reason NodeLost", { pod: pod.metadata.name, node: name, err: String(err) });
    }
    const ofDaemon = pod.metadata.ownerReferences?.some(({ kind, controller }) => controller === true && kind === "DaemonSet");
    if (pod.metadata.deletionTimestamp || ofDaemon) continue;
    const message = `Marking for deletion Pod ${pod.metadata.name} from Node ${name}`;
    ctx.recorder.event({ ...pod, apiVersion: "v1", kind: "Pod" }, "Normal", "NodeControllerEviction", message);
    await deletePod(ctx, pod, signal);
  }
  if (conflicts.length > 0) throw new Error(`update status failed for pods ${conflicts.join(", ")} of node ${name}`);
}

async function setNodeLost({ client }: ControllerContext, pod: Pod, node: string, signal: AbortSignal): Promise<void> {
  if (pod.status?.reason === "NodeLost") return;
  const message = `Node ${node} which was running pod ${pod.metadata.name} is unresponsive`;
  const changed = { ...pod, status: { ...pod.status, reason: "NodeLost", message } };
  await client.update<Pod>(podResource, changed, { subresource: "status", readsMetadataOnly: true, signal });
}

function queueOf(ctx: NodeLifecycleContext, node: Node): EvictionQueue {
  const { evictions } = ctx;
  return evictions.getOrInsertComputed(zoneOf(node), () => newEvictionQueue(ctx.config.nodeLifecycle.evictionRate));
}

/** Nodes with this label do not count for the state of their zone. */
const excludedLabel = "node.kubernetes.io/exclude-disruption";

/**
 * Sets the eviction rate of each zone according to its share of ready nodes.
 * Source: node_lifecycle_controller.go handleDisruption
 */
export async function handleDisruption(
  ctx: NodeLifecycleContext,
  all: readonly Node[],
  readiness: ReadonlyMap<string, boolean>,
  signal: AbortSignal,
): Promise<void> {
  const { zoneStates, evictions, metrics } = ctx;
  const config = ctx.config.nodeLifecycle;
  const counts = new Map<string, { ready: number; notReady: number }>();
  for (const node of all) {
    if (node.metadata.labels?.[excludedLabel] !== undefined) continue;
    const zone = zoneOf(node);
    const count = counts.get(zone) ?? { ready: 0, notReady: 0 };
    counts.set(zone, count);
    if (readiness.get(node.metadata.name ?? "") === true) count.ready++;
    else count.notReady++;
  }
  for (const zone of zoneStates.keys()) if (!counts.has(zone)) metrics.zoneGone(zone);
  zoneStates.clear();
  for (const [zone, { ready, notReady }] of counts) {
    zoneStates.set(zone, zoneState(ready, notReady, config.unhealthyZoneThreshold));
    metrics.zone(zone, ready, notReady);
  }
  const allFully = zoneStates.size > 0 && [...zoneStates.values()].every((state) => state === "FullDisruption");
  if (allFully && !ctx.allFullyDisrupted) {
    ctx.log.info("Controller detected that all Nodes are not-Ready. Entering master disruption mode");
    // A partition of this controller is more likely than a failure of all nodes, so evictions are stopped.
    for (const node of all) {
      queueOf(ctx, node).remove(node.metadata.name ?? "");
      ctx.evicted.delete(node.metadata.name ?? "");
      await setEvictionTaint(ctx, node, undefined, signal);
    }
  } else if (!allFully && ctx.allFullyDisrupted) {
    ctx.log.info("Controller detected that some Nodes are Ready. Exiting master disruption mode");
    // Missed heartbeats during the disruption do not count.
    const at = ctx.clock.monotonic();
    for (const [name, health] of ctx.health) ctx.health.set(name, { ...health, seenAt: at, readyChangedAt: at });
  }
  ctx.allFullyDisrupted = allFully;
  for (const [zone, queue] of evictions) {
    const { ready, notReady } = counts.get(zone) ?? { ready: 0, notReady: 0 };
    queue.setRate(evictionRate(zoneStates.get(zone) ?? "Normal", ready + notReady, allFully, config));
  }
}
