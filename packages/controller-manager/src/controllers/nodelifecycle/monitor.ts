import { isConflict, isNotFound } from "@coxswain/apimachinery/errors/predicates";
import { keyOf } from "@coxswain/apimachinery/meta/object-key";
import { formatTime } from "@coxswain/apimachinery/meta/time";
import type { Node, Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { nodes, pods } from "@coxswain/apimachinery/schema/kinds/resources";
import { considerEviction, handleDisruption } from "./eviction.ts";
import { conditionOf, judgeHealth, type NodeHealth } from "./health.ts";
import { nodeEvent, nodeIndex, type Room } from "./room.ts";

const leaseNamespace = "kube-node-lease";

/** One look at all nodes: says who is silent, and what follows for their Pods. */
export async function monitorNodes(room: Room, signal: AbortSignal): Promise<void> {
  const { ctx } = room;
  const all = room.nodes.lister.list();
  noteComersAndGoers(room, all);
  const readiness = new Map<string, boolean>();
  for (const node of all) {
    if (signal.aborted) return;
    try {
      readiness.set(node.metadata.name ?? "", await monitorNode(room, node, signal));
    } catch (err) {
      ctx.log.error("cannot look after node", err, { node: node.metadata.name });
    }
  }
  await handleDisruption(room, all, readiness, signal);
}

function noteComersAndGoers({ ctx, health, evictions, marksToRetry }: Room, all: readonly Node[]): void {
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
  }
}

/** @returns whether the node is ready */
async function monitorNode(room: Room, node: Node, signal: AbortSignal): Promise<boolean> {
  const { ctx, health } = room;
  const { monitorGraceMs, startupGraceMs } = ctx.config.nodeLifecycle;
  const name = node.metadata.name ?? "";
  const lease = room.leases.lister.get(`${leaseNamespace}/${name}`);
  const known = health.get(name);
  const judgement = judgeHealth({ node, lease, known, now: ctx.clock.now(), graceMs: monitorGraceMs, startupGraceMs });
  if (judgement.conditions !== undefined) {
    ctx.log.v(2)?.info("node hasn't been updated", { node: name, silentMs: ctx.clock.now() - judgement.health.seenAt });
    try {
      const changed = { ...node, status: { ...node.status, conditions: judgement.conditions } };
      await ctx.client.update<Node>(nodes, changed, { subresource: "status", signal });
    } catch (err) {
      if (!isConflict(err)) throw err;
      health.set(name, known ?? judgement.health); // it said something meanwhile: the next look will see
      return judgement.observed === "True";
    }
  }
  health.set(name, judgement.health);
  await considerEviction(room, node, judgement.observed, judgement.health, signal);

  const justLost = judgement.current !== "True" && judgement.observed === "True";
  if (justLost) nodeEvent(ctx, node, "NodeNotReady", "status is now: NodeNotReady");
  const saysNotReady = judgement.observed !== "True" && wasReady(known, node);
  if (justLost || saysNotReady || room.marksToRetry.has(name)) await markPodsNotReady(room, name, signal);
  return judgement.current === "True";
}

/** The node itself said that it is no longer ready, since the last look. */
function wasReady(known: NodeHealth | undefined, node: Node): boolean {
  return known !== undefined && known.transition !== (conditionOf(node, "Ready")?.lastTransitionTime ?? undefined);
}

/** Pods of a node that is not ready serve nobody: they leave their services' endpoints. */
async function markPodsNotReady(
  { ctx, pods: podInformer, marksToRetry }: Room,
  node: string,
  signal: AbortSignal,
): Promise<void> {
  marksToRetry.delete(node);
  for (const pod of podInformer.lister.byIndex(nodeIndex, node)) {
    const conditions = pod.status?.conditions ?? [];
    if (!conditions.some(({ type, status }) => type === "Ready" && status !== "False")) continue;
    const lastTransitionTime = formatTime(ctx.clock.now());
    const marked = conditions.map((condition) =>
      condition.type === "Ready" && condition.status !== "False"
        ? { ...condition, status: "False" as const, lastTransitionTime }
        : condition,
    );
    try {
      const changed = { ...pod, status: { ...pod.status, conditions: marked } };
      await ctx.client.update<Pod>(pods, changed, { subresource: "status", signal });
      ctx.recorder.event({ ...pod, apiVersion: "v1", kind: "Pod" }, "Warning", "NodeNotReady", "Node is not ready");
    } catch (err) {
      if (isNotFound(err)) continue;
      ctx.log.error("cannot mark pod not ready", err, { pod: keyOf(pod) });
      marksToRetry.add(node);
    }
  }
}
