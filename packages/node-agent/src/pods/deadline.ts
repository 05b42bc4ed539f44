import { parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { PodStatus } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { NodePod } from "../pod/pod.ts";
import type { PodVerdict } from "../pod/pod-verdict.ts";

/** The verdict for a Pod that exceeded its activeDeadlineSeconds. Source: pkg/kubelet/active_deadline.go */
export function deadlineVerdict(pod: NodePod, status: PodStatus, now: number): PodVerdict | undefined {
  const dueMs = deadlineDueMs(pod, status, now);
  if (dueMs === undefined || dueMs > 0) return undefined;
  return { reason: "DeadlineExceeded", message: "Pod was active on the node longer than the specified deadline" };
}

/** Milliseconds until the Pod's deadline; undefined without one. */
export function deadlineDueMs(pod: NodePod, status: PodStatus, now: number): number | undefined {
  const seconds = pod.spec.activeDeadlineSeconds;
  const started = parseTime(status.startTime ?? "");
  return seconds === undefined || started === undefined ? undefined : started + seconds * 1000 - now;
}
