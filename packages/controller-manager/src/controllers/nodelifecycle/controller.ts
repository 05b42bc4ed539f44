import { newController } from "@coxswain/apimachinery/controller/controller";
import { newPeriodic } from "@coxswain/apimachinery/controller/periodic";
import { enqueueBy, enqueueSelf, needsSynced } from "@coxswain/apimachinery/controller/sources";
import { isConflict, isNotFound } from "@coxswain/apimachinery/errors/predicates";
import { keyOf } from "@coxswain/apimachinery/meta/object-key";
import type { ControllerContext, Runnable } from "../../controller-context.ts";
import { taintByConditions } from "./condition-taints.ts";
import { evictWhoseTurnItIs } from "./eviction.ts";
import { markNewPod, monitorNodes } from "./monitor.ts";
import { newRoom } from "./room.ts";
import { newTaintManager } from "./taint-manager.ts";

/**
 * node-controller: marks nodes without heartbeat as not ready, taints unhealthy nodes, and evicts Pods that do not
 * tolerate the taints.
 * Watches Nodes, their Leases and Pods; writes nodes/status, taints of Nodes and the Ready condition of Pods on such nodes;
 * deletes Pods.
 * Source: pkg/controller/nodelifecycle/
 */
export function newNodeLifecycleController(ctx: ControllerContext): Runnable {
  const room = newRoom(ctx);
  const { log, clock, queueMetrics: metrics } = ctx;
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
        if (!isConflict(err) && !isNotFound(err)) throw err; // the concurrent change enqueues the node again
      });
      return {};
    },
    workers: 8,
    log,
    clock,
    metrics,
  });
  const marking = newController({
    name: "node_lifecycle_controller_pods",
    sources: [
      needsSynced(nodeInformer),
      enqueueBy(podInformer, ({ enqueue }) => ({
        added(pod) {
          if (pod.spec.nodeName) enqueue(keyOf(pod));
        },
        updated(old, pod) {
          if (pod.spec.nodeName && pod.spec.nodeName !== old.spec.nodeName) enqueue(keyOf(pod));
        },
      })),
    ],
    reconcile: (key, signal) => markNewPod(room, key, signal),
    workers: 4,
    log,
    clock,
    metrics,
  });
  const parts: Runnable[] = [monitoring, evicting, tainting, marking];
  if (ctx.config.nodeLifecycle.taintManager) parts.push(newTaintManager(room));
  return { run: async (signal) => void (await Promise.all(parts.map((part) => part.run(signal)))) };
}
