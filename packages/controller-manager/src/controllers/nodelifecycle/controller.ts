import { newController } from "@coxswain/apimachinery/controller/controller";
import { newPeriodic } from "@coxswain/apimachinery/controller/periodic";
import { enqueueMapped, enqueueSelf } from "@coxswain/apimachinery/controller/sources";
import { isConflict, isNotFound } from "@coxswain/apimachinery/errors/predicates";
import { keyOf } from "@coxswain/apimachinery/meta/object-key";
import { formatTime } from "@coxswain/apimachinery/meta/time";
import type { Lease } from "@coxswain/apimachinery/schema/kinds/coordination/v1";
import type { Node, Pod, Taint } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { leases, nodes, pods } from "@coxswain/apimachinery/schema/kinds/resources";
import type { ControllerContext, Runnable } from "../../controller-context.ts";
import { type EvictionQueue, newEvictionQueue } from "./eviction-queue.ts";
import { conditionOf, judgeHealth, type NodeHealth, statusOf } from "./health.ts";
import { notReadyTaint, unreachableTaint, withConditionTaints, withEvictionTaint } from "./taints.ts";
import { staysForMs } from "./tolerations.ts";
import { evictionRate, type ZoneState, zoneOf, zoneState } from "./zones.ts";

/**
 * node-controller: says that a silent node is not ready, keeps Pods away from nodes that are not well, and evicts those
 * that do not tolerate it.
 * Watches Nodes, their Leases and Pods; writes nodes/status, taints of Nodes, the Ready condition of Pods on silent
 * nodes, and deletes Pods.
 * Source: pkg/controller/nodelifecycle/
 */
export function newNodeLifecycleController(ctx: ControllerContext): Runnable {
  const room = newRoom(ctx);
  const { log, clock, metrics } = ctx;
  const [nodeInformer, podInformer, leaseInformer] = [room.nodes, room.pods, room.leases];
  const monitoring = newPeriodic({
    name: "nodelifecycle",
    periodMs: ctx.config.nodeLifecycle.monitorPeriodMs,
    synced: [nodeInformer, podInformer, leaseInformer],
    work: (signal) => monitorNodes(room, signal),
    log,
    clock,
  });
  const evicting = newPeriodic({
    name: "nodelifecycle",
    periodMs: 100,
    synced: [nodeInformer, podInformer],
    work: (signal) => evictWhoseTurnItIs(room, signal),
    log,
    clock,
  });
  const tainting = newController({
    name: "node_lifecycle_controller",
    sources: [enqueueSelf(nodeInformer)],
    reconcile: async (name, signal) => {
      await taintByConditions(room, name, signal).catch((err) => {
        if (!isConflict(err) && !isNotFound(err)) throw err; // the change that we lost to comes here too
      });
      return {};
    },
    workers: 8,
    log,
    clock,
    metrics,
  });
  const parts: Runnable[] = [monitoring, evicting, tainting];
  if (ctx.config.nodeLifecycle.taintManager) parts.push(newTaintManager(room));
  return { run: async (signal) => void (await Promise.all(parts.map((part) => part.run(signal)))) };
}

/** @internal for tests */
export interface Room {
  readonly ctx: ControllerContext;
  readonly nodes: ReturnType<typeof ofNodes>;
  readonly pods: ReturnType<typeof ofPods>;
  readonly leases: ReturnType<typeof ofLeases>;
  readonly health: Map<string, NodeHealth>;
  /** By zone. */
  readonly evictions: Map<string, EvictionQueue>;
  readonly zoneStates: Map<string, ZoneState>;
  /** Nodes whose Pods could not all be marked. */
  readonly marksToRetry: Set<string>;
  allFullyDisrupted: boolean;
}

const ofNodes = (ctx: ControllerContext) => ctx.informers.for<Node>(nodes);
const ofPods = (ctx: ControllerContext) => ctx.informers.for<Pod>(pods);
const ofLeases = (ctx: ControllerContext) => ctx.informers.for<Lease>(leases);

/** @internal for tests */
export function newRoom(ctx: ControllerContext): Room {
  const room: Room = {
    ctx,
    nodes: ofNodes(ctx),
    pods: ofPods(ctx),
    leases: ofLeases(ctx),
    health: new Map(),
    evictions: new Map(),
    zoneStates: new Map(),
    marksToRetry: new Set(),
    allFullyDisrupted: false,
  };
  room.pods.addIndex(nodeIndex, ({ spec }) => (spec.nodeName ? [spec.nodeName] : []));
  return room;
}

const nodeIndex = "spec.nodeName";
const leaseNamespace = "kube-node-lease";

// ---- Health ------------------------------------------------------------------------------------------------------------

/** One look at all nodes. @internal for tests */
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

// ---- Taints by condition -------------------------------------------------------------------------------------------------

/** @internal for tests */
export async function taintByConditions({ ctx, nodes: nodeInformer }: Room, name: string, signal: AbortSignal): Promise<void> {
  const node = nodeInformer.lister.get(name);
  if (node === undefined) return;
  const taints = withConditionTaints(node, ctx.clock.now());
  const labels = legacyLabels(node);
  if (taints !== undefined || labels !== undefined) await patchNode(ctx, node, { taints, labels }, signal);
}

/** The beta names of two labels follow their stable ones. Source: node_lifecycle_controller.go labelReconcileInfo */
function legacyLabels({ metadata }: Node): Record<string, string> | undefined {
  const changed: Record<string, string> = {};
  for (const name of ["os", "arch"]) {
    const value = metadata.labels?.[`kubernetes.io/${name}`];
    if (value !== undefined && metadata.labels?.[`beta.kubernetes.io/${name}`] !== value)
      changed[`beta.kubernetes.io/${name}`] = value;
  }
  return Object.keys(changed).length === 0 ? undefined : changed;
}

/** Refused with a conflict when the node changed since it was read: what is true then is seen at the next look. */
async function patchNode(
  { client }: ControllerContext,
  { metadata }: Node,
  { taints, labels }: { taints?: Taint[] | undefined; labels?: Record<string, string> | undefined },
  signal: AbortSignal,
): Promise<void> {
  const { name = "", resourceVersion } = metadata;
  const body = {
    metadata: { resourceVersion, ...(labels === undefined ? {} : { labels }) },
    ...(taints === undefined ? {} : { spec: { taints: taints.length === 0 ? null : taints } }),
  };
  await client.patch(nodes, { name }, { type: "merge", body }, { signal });
}

// ---- Eviction ------------------------------------------------------------------------------------------------------------

async function considerEviction(
  room: Room,
  node: Node,
  observed: string,
  health: NodeHealth,
  signal: AbortSignal,
): Promise<void> {
  const { ctx } = room;
  const name = node.metadata.name ?? "";
  const queue = queueOf(room, node);
  if (observed === "True") {
    queue.remove(name);
    await setEvictionTaint(ctx, node, undefined, signal);
    return;
  }
  if (room.allFullyDisrupted) return;
  const key = observed === "Unknown" ? unreachableTaint : notReadyTaint;
  if (ctx.config.nodeLifecycle.taintManager) {
    // A node that is tainted already changes its taint at once; another waits for its turn.
    const tainted = (node.spec?.taints ?? []).some(
      ({ effect, key: k }) => effect === "NoExecute" && (k === notReadyTaint || k === unreachableTaint),
    );
    if (tainted) await setEvictionTaint(ctx, node, key, signal);
    else queue.add(name);
    return;
  }
  const since = observed === "Unknown" ? health.seenAt : health.readyChangedAt;
  if (ctx.clock.now() > since + ctx.config.nodeLifecycle.podEvictionTimeoutMs) queue.add(name);
}

async function setEvictionTaint(
  ctx: ControllerContext,
  node: Node,
  key: typeof notReadyTaint | typeof unreachableTaint | undefined,
  signal: AbortSignal,
): Promise<void> {
  const taints = withEvictionTaint(node, key, ctx.clock.now());
  if (taints === undefined) return;
  try {
    await patchNode(ctx, node, { taints }, signal);
  } catch (err) {
    if (!isConflict(err) && !isNotFound(err)) throw err;
  }
}

/** @internal for tests */
export async function evictWhoseTurnItIs(room: Room, signal: AbortSignal): Promise<void> {
  const { ctx } = room;
  for (const queue of room.evictions.values()) {
    for (const name of queue.take(ctx.clock.monotonic())) {
      const node = room.nodes.lister.get(name);
      if (node === undefined) continue;
      const ready = statusOf(conditionOf(node, "Ready"));
      if (ready === "True") continue; // came back while it waited
      if (ctx.config.nodeLifecycle.taintManager)
        await setEvictionTaint(ctx, node, ready === "Unknown" ? unreachableTaint : notReadyTaint, signal);
      else await deleteAllPods(room, name, signal);
    }
  }
}

/** Without a taint manager the node's Pods are deleted, but for those of DaemonSets, which would come back. */
async function deleteAllPods({ ctx, pods: podInformer }: Room, node: string, signal: AbortSignal): Promise<void> {
  for (const pod of podInformer.lister.byIndex(nodeIndex, node)) {
    const ofDaemon = pod.metadata.ownerReferences?.some(({ kind, controller }) => controller === true && kind === "DaemonSet");
    if (pod.metadata.deletionTimestamp || ofDaemon) continue;
    const message = `Marking for deletion Pod ${pod.metadata.name} from Node ${node}`;
    ctx.recorder.event({ ...pod, apiVersion: "v1", kind: "Pod" }, "Normal", "NodeControllerEviction", message);
    await deletePod(ctx, pod, signal);
  }
}

async function deletePod({ client }: ControllerContext, { metadata }: Pod, signal: AbortSignal): Promise<void> {
  const { namespace, name = "" } = metadata;
  await client.delete(pods, { namespace, name }, { signal }).catch((err) => {
    if (!isNotFound(err)) throw err;
  });
}

function queueOf({ ctx, evictions }: Room, node: Node): EvictionQueue {
  const zone = zoneOf(node);
  let queue = evictions.get(zone);
  if (queue === undefined) {
    queue = newEvictionQueue(ctx.config.nodeLifecycle.evictionRate);
    evictions.set(zone, queue);
  }
  return queue;
}

/** Sets each zone's rate by how many of its nodes are ready. Source: node_lifecycle_controller.go handleDisruption */
async function handleDisruption(
  room: Room,
  all: readonly Node[],
  readiness: ReadonlyMap<string, boolean>,
  signal: AbortSignal,
): Promise<void> {
  const { ctx, zoneStates, evictions } = room;
  const config = ctx.config.nodeLifecycle;
  const counts = new Map<string, { ready: number; notReady: number }>();
  for (const node of all) {
    const zone = zoneOf(node);
    const count = counts.get(zone) ?? { ready: 0, notReady: 0 };
    counts.set(zone, count);
    if (readiness.get(node.metadata.name ?? "") === true) count.ready++;
    else count.notReady++;
  }
  zoneStates.clear();
  for (const [zone, { ready, notReady }] of counts)
    zoneStates.set(zone, zoneState(ready, notReady, config.unhealthyZoneThreshold));
  const allFully = zoneStates.size > 0 && [...zoneStates.values()].every((state) => state === "FullDisruption");
  if (allFully && !room.allFullyDisrupted) {
    ctx.log.info("Controller detected that all Nodes are not-Ready. Entering master disruption mode");
    // It is more likely that we are cut off than that every node is: nobody is evicted on our word.
    for (const node of all) {
      queueOf(room, node).remove(node.metadata.name ?? "");
      await setEvictionTaint(ctx, node, undefined, signal);
    }
  } else if (!allFully && room.allFullyDisrupted) {
    ctx.log.info("Controller detected that some Nodes are Ready. Exiting master disruption mode");
    // Silence during the disruption does not count.
    const now = ctx.clock.now();
    for (const [name, health] of room.health) room.health.set(name, { ...health, seenAt: now, readyChangedAt: now });
  }
  room.allFullyDisrupted = allFully;
  for (const [zone, queue] of evictions) {
    const { ready, notReady } = counts.get(zone) ?? { ready: 0, notReady: 0 };
    queue.setRate(evictionRate(zoneStates.get(zone) ?? "Normal", ready + notReady, allFully, config));
  }
}

// ---- NoExecute -----------------------------------------------------------------------------------------------------------

/** Deletes Pods that do not tolerate a NoExecute taint of their node, or no longer. Source: scheduler/taint_manager.go */
export function newTaintManager(room: Room): Runnable {
  const { ctx, nodes: nodeInformer, pods: podInformer } = room;
  const recorder = ctx.recorderOf("taint-controller");
  /** When a Pod that tolerates for a while was first seen beside the taint, by uid. */
  const since = new Map<string, number>();
  podInformer.addHandler({ deleted: ({ metadata }) => void since.delete(metadata.uid ?? "") });
  return newController({
    name: "noexec_taint_pod",
    sources: [
      enqueueSelf(podInformer),
      enqueueMapped(
        nodeInformer,
        ({ metadata }) => podInformer.lister.byIndex(nodeIndex, metadata.name ?? "").map(keyOf),
        (old, now) => JSON.stringify(old.spec?.taints ?? []) !== JSON.stringify(now.spec?.taints ?? []),
      ),
    ],
    async reconcile(key, signal) {
      const pod = podInformer.lister.get(key);
      if (pod === undefined || !pod.spec.nodeName || pod.metadata.deletionTimestamp) return {};
      const uid = pod.metadata.uid ?? "";
      const taints = nodeInformer.lister.get(pod.spec.nodeName)?.spec?.taints ?? [];
      const staysMs = staysForMs(pod, taints);
      if (staysMs === Number.POSITIVE_INFINITY) {
        if (since.delete(uid)) {
          const message = `Cancelling deletion of Pod ${key}`;
          recorder.event({ ...pod, apiVersion: "v1", kind: "Pod" }, "Normal", "TaintManagerEviction", message);
        }
        return {};
      }
      const now = ctx.clock.monotonic();
      const startedAt = since.get(uid) ?? now;
      since.set(uid, startedAt);
      const leftMs = startedAt + staysMs - now;
      if (leftMs > 0) return { requeueAfterMs: leftMs };
      recorder.event(
        { ...pod, apiVersion: "v1", kind: "Pod" },
        "Normal",
        "TaintManagerEviction",
        `Marking for deletion Pod ${key}`,
      );
      await deletePod(ctx, pod, signal);
      return {};
    },
    workers: 8,
    log: ctx.log,
    clock: ctx.clock,
    metrics: ctx.metrics,
  });
}

function nodeEvent(ctx: ControllerContext, { metadata }: Pick<Node, "metadata">, reason: string, message: string): void {
  const { name = "", uid } = metadata;
  ctx.recorder.event({ kind: "Node", name, ...(uid === undefined ? {} : { uid }) }, "Normal", reason, `Node ${name} ${message}`);
}
