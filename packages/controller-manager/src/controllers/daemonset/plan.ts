import type { Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { isAvailable, isReady, isTerminating } from "../../pods/pod-state.ts";
import { byBindingAndAge, isUpdated, type Plan, surgeCount, type View } from "./node-pods.ts";

/** A pod that failed, on the node where it did. */
export interface FailedPod {
  readonly pod: Pod;
  readonly nodeName: string;
}

export interface NodesPlan extends Plan {
  /** Those among `delete` that failed. */
  readonly failed: readonly FailedPod[];
  /** When the next failed pod may be deleted, if one has to wait. */
  readonly retryAfterMs: number | undefined;
}

/** For the pods that failed: how long one on this node has to wait. */
export type FailedPodWait = (nodeName: string) => number;

/**
 * Pure: one pod on each node that the set is for, none elsewhere, and failed ones replaced; while an update surges two,
 * an old one that serves and a new one that does not yet.
 * Source: pkg/controller/daemon/daemon_controller.go manage, podsShouldBeOnNode
 */
export function planNodes(view: View, waitMsOf: FailedPodWait): NodesPlan {
  const { nodes, pods } = view;
  const [create, surplus, failed]: [string[], Pod[], FailedPod[]] = [[], [], []];
  let retryAfterMs: number | undefined;
  const surges = surgeCount(view, 1) > 0;
  for (const { name: nodeName, shouldRun, shouldContinue } of nodes) {
    const there = pods.get(nodeName) ?? [];
    const staying = there.filter((pod) => !isTerminating(pod));
    if (!shouldContinue) {
      surplus.push(...staying);
      continue;
    }
    if (there.length === 0) {
      if (shouldRun) create.push(nodeName);
      continue;
    }
    const running = staying.filter(({ status }) => status?.phase !== "Failed");
    const waitMs = running.length < staying.length ? waitMsOf(nodeName) : 0;
    if (waitMs > 0) retryAfterMs = Math.min(waitMs, retryAfterMs ?? waitMs);
    // One at a time: the wait grows with each.
    else
      failed.push(
        ...staying
          .filter((pod) => !running.includes(pod))
          .slice(0, 1)
          .map((pod) => ({ pod, nodeName })),
      );
    if (!surges) surplus.push(...running.toSorted(byBindingAndAge).slice(1));
    else if (running.length === 0 && shouldRun && waitMs === 0) create.push(nodeName);
    else surplus.push(...surplusWhileSurging(view, running));
  }
  return { create, delete: [...surplus, ...failed.map(({ pod }) => pod), ...strayed(view)], failed, retryAfterMs };
}

/** Of each template only the oldest stays, and the old one only as long as it serves and the new one does not. */
function surplusWhileSurging({ daemonSet, hash, now }: View, running: readonly Pod[]): Pod[] {
  if (running.length <= 1) return [];
  const sorted = running.toSorted(byBindingAndAge);
  const oldestNew = sorted.find((pod) => isUpdated(pod, hash));
  const oldestOld = sorted.find((pod) => !isUpdated(pod, hash));
  const surplus = sorted.filter((pod) => pod !== oldestNew && pod !== oldestOld);
  if (oldestNew === undefined || oldestOld === undefined) return surplus;
  const replaced = !isReady(oldestOld) || isAvailable(oldestNew, daemonSet.spec.minReadySeconds ?? 0, now);
  return replaced ? [...surplus, oldestOld] : surplus;
}

/** Pods for nodes that are gone, which nobody will ever bind. */
function strayed({ nodes, pods }: View): Pod[] {
  const known = new Set(nodes.map(({ name }) => name));
  return [...pods].flatMap(([nodeName, there]) => (known.has(nodeName) ? [] : there.filter(({ spec }) => !spec.nodeName)));
}
