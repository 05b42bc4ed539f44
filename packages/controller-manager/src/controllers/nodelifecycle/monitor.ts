import { done, type Result } from "@coxswain/apimachinery/controller/controller";
import { isConflict, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { keyOf, type ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import { formatTime } from "@coxswain/apimachinery/objects/meta/time";
import type { Node, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { nodes, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { forEachLimited } from "@coxswain/apimachinery/process/event-loop/for-each-limited";
import { type NodeLifecycleContext, nodeEvent } from "./context.ts";
import { handleDisruption, updateEviction } from "./eviction.ts";
import { checkHealth, conditionOf } from "./health.ts";

const leaseNamespace = "kube-node-lease";
/** A lost node takes several requests, one after the other. Source: scheduler/taint_manager.go UpdateWorkerSize */
const nodesAtOnce = 8;

/** Checks the health of all nodes once and updates conditions, evictions and Pods accordingly. */
export async function monitorNodes(ctx: NodeLifecycleContext, signal: AbortSignal): Promise<void> {
  const all = ctx.nodes.lister.list();
  updateKnownNodes(ctx, all);
  const readiness = new Map<string, boolean>();
  await forEachLimited(all, nodesAtOnce, async (node) => {
    if (signal.aborted) return;
    try {
      readiness.set(node.metadata.name ?? "", await monitorNode(ctx, node, signal));
    } catch (err) {
      ctx.log.error("cannot update the state of a node", err, { node: node.metadata.name });
    }
  });
  if (!signal.aborted) await handleDisruption(ctx, all, readiness, signal);
}

function updateKnownNodes(ctx: NodeLifecycleContext, all: readonly Node[]): void {
  const { health, evictions, marksToRetry } = ctx;
  const names = new Set(all.map(({ metadata }) => metadata.name ?? ""));
  for (const node of all) {
    const name = node.metadata.name ?? "";
    if (!health.has(name)) nodeEvent(ctx, node, "RegisteredNode", `event: Registered Node ${name} in Controller`);
  }
  for (const name of [...health.keys()]) {
    if (names.has(name)) continue;
    nodeEvent(ctx, { metadata: { name } }, "RemovingNode", `event: Removing Node ${name} from Controller`);
    health.delete(name);
    marksToRetry.delete(name);
    for (const queue of evictions.values()) queue.remove(name);
    ctx.evicted.delete(name);
  }
}

/** @returns whether the node is ready */
async function monitorNode(ctx: NodeLifecycleContext, node: Node, signal: AbortSignal): Promise<boolean> {
  const { health } = ctx;
  const { monitorGraceMs, startupGraceMs } = ctx.config.nodeLifecycle;
  const name = node.metadata.name ?? "";
  const lease = ctx.leases.lister.get(`${leaseNamespace}/${name}`);
  const known = health.get(name);
  const check = checkHealth({
    node,
    lease,
    known,
    now: ctx.clock.now(),
    monotonic: ctx.clock.monotonic(),
    graceMs: monitorGraceMs,
    startupGraceMs,
  });
  if (check.conditions !== undefined) {
    ctx.log.v(2)?.info("node hasn't been updated", { node: name, silentMs: ctx.clock.monotonic() - check.health.seenAt });
    try {
      const changed = { ...node, status: { ...node.status, conditions: check.conditions } };
      await ctx.client.update<Node>(nodes, changed, { subresource: "status", readsMetadataOnly: true, signal });
    } catch (err) {
      if (!isConflict(err)) throw err;
      health.set(name, known ?? check.health); // the node reported in the meantime; the next check sees it
      return check.observed === "True";
    }
  }
  health.set(name, check.health);
  // A node that never reported is not considered for eviction before its startup grace period ends.
  const isChecked = check.conditions !== undefined || conditionOf(node, "Ready") !== undefined;
  if (isChecked) await updateEviction(ctx, node, check.observed, check.health, signal);

  const justLost = check.current !== "True" && check.observed === "True";
  if (justLost) nodeEvent(ctx, node, "NodeNotReady", "status is now: NodeNotReady");
  // When the node itself reports not ready, its kubelet still updates the status of its Pods.
  if (justLost || (ctx.marksToRetry.has(name) && check.observed !== "True")) await markPodsNotReady(ctx, name, signal);
  else ctx.marksToRetry.delete(name);
  return check.current === "True";
}

/** Sets Pods of a not ready node to not ready, which removes them from service endpoints. */
async function markPodsNotReady(ctx: NodeLifecycleContext, node: string, signal: AbortSignal): Promise<void> {
  ctx.marksToRetry.delete(node);
  for (const pod of ctx.podsOn(node)) {
    try {
      await markNotReady(ctx, pod, signal);
    } catch (err) {
      ctx.log.error("cannot mark pod not ready", err, { pod: keyOf(pod) });
      ctx.marksToRetry.add(node);
    }
  }
}

/**
 * Marks a newly bound or first observed Pod as not ready when its node is not ready: it may have been bound after the
 * node's Pods were marked, or a previous process may have stopped while marking.
 * Source: node_lifecycle_controller.go processPod
 */
export async function markNewPod(ctx: NodeLifecycleContext, key: ObjectKey, signal: AbortSignal): Promise<Result> {
  const pod = ctx.pods.lister.get(key);
  const node = ctx.nodes.lister.get(pod?.spec.nodeName ?? "");
  if (pod === undefined || node === undefined) return done;
  // The node has not been checked yet; its conditions may be stale.
  if (!ctx.health.has(node.metadata.name ?? "")) return { requeueAfterMs: ctx.config.nodeLifecycle.monitorPeriodMs };
  const ready = conditionOf(node, "Ready");
  if (ready !== undefined && ready.status !== "True") await markNotReady(ctx, pod, signal);
  return done;
}

async function markNotReady(ctx: NodeLifecycleContext, pod: Pod, signal: AbortSignal): Promise<void> {
  const conditions = pod.status?.conditions ?? [];
  if (!conditions.some(({ type, status }) => type === "Ready" && status !== "False")) return;
  const lastTransitionTime = formatTime(ctx.clock.now());
  const marked = conditions.map((condition) =>
    condition.type === "Ready" && condition.status !== "False"
      ? { ...condition, status: "False" as const, lastTransitionTime }
      : condition,
  );
  try {
    const changed = { ...pod, status: { ...pod.status, conditions: marked } };
    await ctx.client.update<Pod>(pods, changed, { subresource: "status", readsMetadataOnly: true, signal });
    ctx.recorder.event({ ...pod, apiVersion: "v1", kind: "Pod" }, "Warning", "NodeNotReady", "Node is not ready");
  } catch (err) {
    if (!isNotFound(err)) throw err;
  }
}
