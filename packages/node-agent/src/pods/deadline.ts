import { parseTime } from "@coxswain/apimachinery/meta/time";
import type { PodStatus } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { NodePod } from "./pod.ts";
import type { PodVerdict } from "./pod-runner.ts";

/** What becomes of a Pod whose time is up. Source: pkg/kubelet/active_deadline.go */
export function deadlineVerdict(pod: NodePod, status: PodStatus, now: number): PodVerdict | undefined {
  const dueMs = deadlineDueMs(pod, status, now);
  if (dueMs === undefined || dueMs > 0) return undefined;
  return { reason: "DeadlineExceeded", message: "Pod was active on the node longer than the specified deadline" };
}

/** How long the Pod may still run; undefined without a limit. */
export function deadlineDueMs(pod: NodePod, status: PodStatus, now: number): number | undefined {
  const seconds = pod.spec.activeDeadlineSeconds;
  const started = parseTime(status.startTime ?? "");
  return seconds === undefined || started === undefined ? undefined : started + seconds * 1000 - now;
}
