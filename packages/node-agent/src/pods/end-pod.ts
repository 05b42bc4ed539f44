import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { AgentEvents } from "../events.ts";
import type { NodePod } from "../pod/pod.ts";
import type { PodVerdict } from "../pod/pod-verdict.ts";
import type { PodWorkers } from "./pod-workers.ts";

/**
 * Terminates a Pod on behalf of the node (eviction, preemption) and records an event.
 * @param graceSeconds overrides the Pod's own grace period
 * @throws Error when the Pod still runs after 1.5 times the grace period (at least 10 s): the caller has other Pods to handle
 */
export type EndPod = (pod: NodePod, verdict: PodVerdict, graceSeconds: number | undefined) => Promise<void>;

const leastWaitSeconds = 10;

/**
 * Returns an `EndPod` that writes the event, requests the eviction from the Pod's worker and waits for it.
 * Source: pkg/kubelet/pod_workers.go killPodNow
 */
export function newEndPod(options: {
  workers: Pick<PodWorkers, "evict">;
  notify: Pick<AgentEvents, "pod">;
  clock: Clock;
}): EndPod {
  const { workers, notify, clock } = options;
  return async (pod, verdict, graceSeconds) => {
    notify.pod(pod, undefined, "Warning", verdict.reason, verdict.message, verdict.annotations);
    const own = graceSeconds ?? pod.spec.terminationGracePeriodSeconds ?? 0;
    const waitSeconds = Math.max(own + Math.floor(own / 2), leastWaitSeconds);
    const waiting = new AbortController();
    const isLate = clock.sleep(waitSeconds * 1000, waiting.signal).then(
      () => true,
      () => false,
    );
    const ended = workers.evict(pod.metadata.uid, verdict, graceSeconds).then(() => false);
    const late = await Promise.race([ended, isLate]);
    waiting.abort();
    if (!late) return;
    const message = "Container runtime did not kill the pod within specified grace period.";
    notify.pod(pod, undefined, "Warning", "ExceededGracePeriod", message);
    throw new Error("timeout waiting to kill pod");
  };
}
