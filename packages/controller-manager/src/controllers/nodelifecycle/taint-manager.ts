import { newController } from "@coxswain/apimachinery/controller/controller";
import { enqueueMapped, enqueueSelf } from "@coxswain/apimachinery/controller/sources";
import { keyOf } from "@coxswain/apimachinery/meta/object-key";
import type { Runnable } from "../../controller-context.ts";
import { deletePod, nodeIndex, type Room } from "./room.ts";
import { staysForMs } from "./tolerations.ts";

/**
 * Deletes Pods that do not tolerate a NoExecute taint of their node, or whose toleration has expired.
 * Source: scheduler/taint_manager.go
 */
export function newTaintManager(room: Room): Runnable {
  const { ctx, nodes: nodeInformer, pods: podInformer } = room;
  const recorder = ctx.recorderOf("taint-controller");
  /** First observation of a Pod with a time-limited toleration of the taints, by uid (monotonic ms). */
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
    metrics: ctx.queueMetrics,
  });
}
