import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { isAvailable, isReady, isTerminating } from "../../pods/pod-state.ts";
import { byBindingAndAge, isUpdated, type Plan, surgeCount, type View } from "./node-pods.ts";

/** A failed Pod and its node. */
interface FailedPod {
  readonly pod: Pod;
  readonly nodeName: string;
}

/** Plan of `planNodes`. */
interface NodesPlan extends Plan {
  /** The failed Pods among `delete`. */
  readonly failed: readonly FailedPod[];
  /** Delay in ms until the next failed Pod in backoff may be deleted; undefined without one. */
  readonly retryAfterMs: number | undefined;
}

/** Remaining backoff in ms for failed Pods on a node. */
type FailedPodWait = (nodeName: string) => number;

/**
 * Pure: plans one Pod on each eligible node, none elsewhere, and replacement of failed Pods. During a surge a node may
 * have two: a ready old Pod and a new one that is not available yet.
 * Source: pkg/controller/daemon/daemon_controller.go manage, podsShouldBeOnNode
 */
export function planNodes(view: View, waitMsOf: FailedPodWait): NodesPlan {
  const { nodes, pods } = view;
  const [create, surplus, failed]: [string[], Pod[], FailedPod[]] = [[], [], []];
  let retryAfterMs: number | undefined;
  const surges = surgeCount(view, 1) > 0;
  for (const { name: nodeName, shouldRun, shouldContinue } of nodes) {
    const existing = pods.get(nodeName) ?? [];
    const remaining = existing.filter((pod) => !isTerminating(pod));
    if (!shouldContinue) {
      surplus.push(...remaining);
      continue;
    }
    if (existing.length === 0) {
      if (shouldRun) create.push(nodeName);
      continue;
    }
    const running = remaining.filter(({ status }) => status?.phase !== "Failed");
    const waitMs = running.length < remaining.length ? waitMsOf(nodeName) : 0;
    if (waitMs > 0) retryAfterMs = Math.min(waitMs, retryAfterMs ?? waitMs);
    // One at a time, because the backoff grows with each deletion.
    else
      failed.push(
        ...remaining
          .filter((pod) => !running.includes(pod))
          .slice(0, 1)
          .map((pod) => ({ pod, nodeName })),
      );
    if (!surges) surplus.push(...running.toSorted(byBindingAndAge).slice(1));
    else if (running.length === 0 && shouldRun && waitMs === 0) create.push(nodeName);
    else surplus.push(...surplusWhileSurging(view, running));
  }
  return {
    create,
    delete: [...surplus, ...failed.map(({ pod }) => pod), ...unscheduledOnDeletedNodes(view)],
    failed,
    retryAfterMs,
  };
}

/** Keeps the oldest Pod of each template; the old one only while it is ready and the new one is not available. */
function surplusWhileSurging({ daemonSet, hash, now }: View, running: readonly Pod[]): Pod[] {
  const sorted = running.toSorted(byBindingAndAge);
  const oldestNew = sorted.find((pod) => isUpdated(pod, hash));
  const oldestOld = sorted.find((pod) => !isUpdated(pod, hash));
  const surplus = sorted.filter((pod) => pod !== oldestNew && pod !== oldestOld);
  if (oldestNew === undefined || oldestOld === undefined) return surplus;
  const replaced = !isReady(oldestOld) || isAvailable(oldestNew, daemonSet.spec.minReadySeconds ?? 0, now);
  return replaced ? [...surplus, oldestOld] : surplus;
}

/** Unscheduled Pods pinned to deleted nodes; they would stay pending forever. */
function unscheduledOnDeletedNodes({ nodes, pods }: View): Pod[] {
  const known = new Set(nodes.map(({ name }) => name));
  return [...pods].flatMap(([nodeName, existing]) => (known.has(nodeName) ? [] : existing.filter(({ spec }) => !spec.nodeName)));
}
