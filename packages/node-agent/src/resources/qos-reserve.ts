import { type QosClass, qosClass } from "@coxswain/apimachinery/quota/qos";
import type { NodePod } from "../pod/pod.ts";
import { podResources } from "../pod/pod-resources.ts";

/**
 * Parses `--qos-reserved`: the share of requests that lower QoS classes cannot use.
 * @returns the percentage for memory, the only supported resource; undefined when not set
 * @throws Error for other resources and invalid percentages
 * Source: pkg/kubelet/cm/helpers_linux.go, container_manager.go ParseQOSReserved
 */
export function parseQosReserved(reserved: Readonly<Record<string, string>> | undefined): number | undefined {
  let memory: number | undefined;
  for (const [name, text] of Object.entries(reserved ?? {})) {
    if (name !== "memory") throw new Error(`cannot reserve ${JSON.stringify(name)} resource`);
    if (!text.endsWith("%")) throw new Error(`percentage specified in resource reservation ${text} does not end in %`);
    if (!/^-?\d{1,9}%$/.test(text))
      throw new Error(`strconv.ParseInt: parsing ${JSON.stringify(text.slice(0, -1))}: invalid syntax`);
    memory = Number(text.slice(0, -1));
    if (memory < 0 || memory > 100) throw new Error("only percentages between 0 and 100 are allowed");
  }
  return memory;
}

/**
 * Pure: memory limits of the Burstable and BestEffort cgroups that leave the reserved share of the classes above available.
 * Source: pkg/kubelet/cm/qos_container_manager_linux.go setMemoryReserve
 */
export function classMemoryLimits(
  pods: readonly NodePod[],
  allocatableBytes: number,
  percent: number,
): { Burstable: number; BestEffort: number } {
  const requested = requestedMemory(pods);
  const kept = (of: QosClass): number => Math.trunc((requested[of] * percent) / 100);
  const burstable = allocatableBytes - kept("Guaranteed");
  return { Burstable: burstable, BestEffort: burstable - kept("Burstable") };
}

/** Pure: requested memory in bytes by QoS class. */
export function requestedMemory(pods: readonly NodePod[]): Record<QosClass, number> {
  const requested: Record<QosClass, number> = { Guaranteed: 0, Burstable: 0, BestEffort: 0 };
  for (const pod of pods) requested[qosClass(pod)] += Number(podResources(pod, "requests").get("memory")?.value() ?? 0);
  return requested;
}
