import type { Pod } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { type AnyContainer, isNodeCriticalPod, type NodePod } from "../pods/pod.ts";
import { quantityOf } from "./pod-resources.ts";

export type QosClass = "Guaranteed" | "Burstable" | "BestEffort";

const qosResources = ["cpu", "memory"] as const;

/** Pure. Source: pkg/apis/core/v1/helper/qos/qos.go */
export function qosClass(pod: Pod): QosClass {
  const containers = [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])];
  let any = false;
  let guaranteed = true;
  const totals = { requests: new Map<string, bigint>(), limits: new Map<string, bigint>() };
  for (const container of containers) {
    const { requests, limits } = container.resources ?? {};
    for (const name of qosResources) {
      const request = quantityOf(requests, name);
      const limit = quantityOf(limits, name);
      if (!request.isZero) {
        any = true;
        totals.requests.set(name, (totals.requests.get(name) ?? 0n) + BigInt(request.milliValue()));
      }
      if (limit.isZero) guaranteed = false;
      else {
        any = true;
        totals.limits.set(name, (totals.limits.get(name) ?? 0n) + BigInt(limit.milliValue()));
      }
    }
  }
  if (!any) return "BestEffort";
  if (guaranteed && qosResources.every((name) => totals.requests.get(name) === totals.limits.get(name))) return "Guaranteed";
  return "Burstable";
}

const guaranteedOomScore = -997;
const bestEffortOomScore = 1000;

/**
 * How willingly the kernel kills a container when memory runs out: Burstable ones the more the less they asked for.
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
