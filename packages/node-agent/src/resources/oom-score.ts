import { qosClass } from "@coxswain/apimachinery/quota/qos";
import { type AnyContainer, isNodeCriticalPod, type NodePod } from "../pod/pod.ts";
import { quantityOf } from "../pod/pod-resources.ts";

const guaranteedOomScore = -997;
const bestEffortOomScore = 1000;

/**
 * The `oom_score_adj` of a container. Burstable containers get a higher score the smaller their memory request is.
 * Source: pkg/kubelet/qos/policy.go
 */
export function oomScoreAdj(pod: NodePod, container: AnyContainer, memoryCapacityBytes: number): number {
  if (isNodeCriticalPod(pod)) return guaranteedOomScore;
  const qos = qosClass(pod);
  if (qos === "Guaranteed") return guaranteedOomScore;
  if (qos === "BestEffort") return bestEffortOomScore;
  const resources = "resources" in container ? container.resources : undefined;
  const requested = quantityOf(resources?.requests, "memory").value();
  const score = 1000 - Math.trunc((1000 * Number(requested)) / Math.max(1, memoryCapacityBytes));
  if (score < 1000 + guaranteedOomScore) return 1000 + guaranteedOomScore;
  return score === bestEffortOomScore ? score - 1 : score;
}
