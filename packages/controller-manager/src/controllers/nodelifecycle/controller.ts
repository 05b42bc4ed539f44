import { type Controller, done } from "@coxswain/apimachinery/controller/controller";
import { enqueueBy, enqueueSelf, needsSynced } from "@coxswain/apimachinery/controller/sources";
import { keyOf } from "@coxswain/apimachinery/objects/meta/object-key";
import type { ControllerContext, Runnable } from "../../controller-context.ts";
import { defineController, definePeriodic, runTogether } from "../../define-controller.ts";
import { taintByConditions } from "./condition-taints.ts";
import { newNodeLifecycleContext } from "./context.ts";
import { hasQueuedNodes, processEvictions } from "./eviction.ts";
import { markNewPod, monitorNodes } from "./monitor.ts";
import { newTaintManager } from "./taint-manager.ts";

const evictionPeriodMs = 100;
/** The only key of the controller that processes the eviction queues. */
const allQueues = "zones";

/**
 * node-controller: marks nodes without heartbeat as not ready, taints unhealthy nodes, and evicts Pods that do not
 * tolerate the taints.
 * Watches Nodes, their Leases and Pods; writes nodes/status, taints of Nodes and the Ready condition of Pods on such nodes;
 * deletes Pods.
 * Source: pkg/controller/nodelifecycle/
 */
export function newNodeLifecycleController(base: ControllerContext): Runnable {
  const ctx = newNodeLifecycleContext(base);
  const [nodeInformer, podInformer, leaseInformer] = [ctx.nodes, ctx.pods, ctx.leases];
  const monitor = definePeriodic(ctx, {
    name: "nodelifecycle",
    periodMs: ctx.config.nodeLifecycle.monitorPeriodMs,
    synced: [nodeInformer, podInformer, leaseInformer],
    async work(context, signal) {
      try {
        await monitorNodes(context, signal);
      } finally {
        if (hasQueuedNodes(context)) evictions.enqueue(allQueues);
      }
    },
  });
  // Enqueued only while a node waits for eviction: polling ten times a second would be most of the work of an idle process.
  const evictions: Controller = defineController(ctx, {
    name: "nodelifecycle_evictions",
    objectOf: () => undefined,
    sources: [needsSynced(nodeInformer), needsSynced(podInformer)],
    async reconcile(context, _key, signal) {
      await processEvictions(context, signal);
      return hasQueuedNodes(context) ? { requeueAfterMs: evictionPeriodMs } : done;
    },
  });
  const tainter = defineController(ctx, {
    name: "node_lifecycle_controller",
    sources: [enqueueSelf(nodeInformer)],
    reconcile: taintByConditions,
    workers: 8,
  });
  const podUpdater = defineController(ctx, {
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
    reconcile: markNewPod,
    workers: 4,
  });
  const parts: Runnable[] = [monitor, evictions, tainter, podUpdater];
  if (ctx.config.nodeLifecycle.taintManager) parts.push(newTaintManager(ctx));
  return runTogether(...parts);
}
