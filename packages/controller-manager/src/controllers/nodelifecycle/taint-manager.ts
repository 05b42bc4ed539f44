import { done, type Result } from "@coxswain/apimachinery/controller/controller";
import { enqueueBy, enqueueMapped } from "@coxswain/apimachinery/controller/sources";
import { deepEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { keyOf, type ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { ControllerContext, Runnable } from "../../controller-context.ts";
import { defineController } from "../../define-controller.ts";
import { deletePod, type NodeLifecycleContext } from "./context.ts";
import { toleratedForMs } from "./tolerations.ts";

interface TaintManagerContext extends Pick<NodeLifecycleContext, keyof ControllerContext | "nodes" | "pods" | "podsOn"> {
  /** First observation of a Pod with a time-limited toleration of the taints, by uid (monotonic ms); -Infinity once its time is over. */
  readonly toleratedSince: Map<string, number>;
}

/**
 * Deletes Pods that do not tolerate a NoExecute taint of their node, or whose toleration has expired.
 * Source: scheduler/taint_manager.go
 */
export function newTaintManager(base: NodeLifecycleContext): Runnable {
  const ctx: TaintManagerContext = { ...base, recorder: base.recorderOf("taint-controller"), toleratedSince: new Map() };
  return defineController(ctx, {
    name: "noexec_taint_pod",
    resource: base.pods.ref,
    sources: [
      enqueueBy(ctx.pods, ({ enqueue }) => ({
        added(pod) {
          if (pod.spec.nodeName) enqueue(keyOf(pod));
        },
        updated(old, pod) {
          if (pod.spec.nodeName && mayChangeEviction(old, pod)) enqueue(keyOf(pod));
        },
        deleted(pod) {
          // The decision about a Pod that has waited is forgotten by its reconciliation.
          if (cancel(ctx, pod)) enqueue(keyOf(pod));
        },
      })),
      enqueueMapped(
        ctx.nodes,
        ({ metadata }) => ctx.podsOn(metadata.name ?? "").map(keyOf),
        (old, now) => JSON.stringify(old.spec?.taints ?? []) !== JSON.stringify(now.spec?.taints ?? []),
      ),
    ],
    reconcile,
    workers: 8,
  });
}

/** Most changes of a Pod are of its status, which does not matter here. Source: taint_manager.go PodUpdated */
function mayChangeEviction({ spec: old }: Pod, { metadata, spec }: Pod): boolean {
  return Boolean(metadata.deletionTimestamp) || old.nodeName !== spec.nodeName || !deepEqual(old.tolerations, spec.tolerations);
}

async function reconcile(ctx: TaintManagerContext, key: ObjectKey, signal: AbortSignal): Promise<Result> {
  const { clock, toleratedSince } = ctx;
  const pod = ctx.pods.lister.get(key);
  if (pod === undefined || !pod.spec.nodeName) return done;
  const isMarked = pod.metadata.deletionTimestamp !== undefined;
  if (isMarked && !isLeftBehind(pod)) return done;
  const { uid = "" } = pod.metadata;
  const taints = ctx.nodes.lister.get(pod.spec.nodeName)?.spec?.taints ?? [];
  const toleratedMs = toleratedForMs(pod, taints);
  if (toleratedMs === Number.POSITIVE_INFINITY) {
    cancel(ctx, pod);
    return done;
  }
  const now = clock.monotonic();
  if (toleratedMs === 0) cancel(ctx, pod);
  const since = toleratedSince.getOrInsert(uid, now);
  const leftMs = since + toleratedMs - now;
  if (leftMs > 0) {
    const description = `its node has a taint that it tolerates for ${Math.ceil(toleratedMs / 1000)} s only, then it is deleted`;
    return { requeueAfterMs: leftMs, decision: { verdict: "waiting", reason: "TaintEviction", description } };
  }
  toleratedSince.set(uid, Number.NEGATIVE_INFINITY);
  if (!isMarked) record(ctx, pod, `Marking for deletion Pod ${key}`);
  await deletePod(ctx, pod, signal);
  return done;
}

/**
 * Forgets since when a pod waits for the end of its toleration, with an event if it still waited.
 * @returns whether it waited or was marked for deletion
 */
function cancel(ctx: TaintManagerContext, pod: Pod): boolean {
  const { uid = "" } = pod.metadata;
  if (Number.isFinite(ctx.toleratedSince.get(uid))) record(ctx, pod, `Cancelling deletion of Pod ${keyOf(pod)}`);
  return ctx.toleratedSince.delete(uid);
}

const record = ({ recorder }: TaintManagerContext, pod: Pod, message: string): void =>
  recorder.event({ ...pod, apiVersion: "v1", kind: "Pod" }, "Normal", "TaintManagerEviction", message);

/**
 * Pure: whether a deletion without grace period has marked the Pod but not removed it, which takes a second write. Another delete request
 * has to complete it: the kubelet's, or this one where no kubelet runs. A Pod with finalizers is removed with the last one of them.
 */
function isLeftBehind({ metadata }: Pod): boolean {
  return metadata.deletionGracePeriodSeconds === 0 && (metadata.finalizers?.length ?? 0) === 0;
}
