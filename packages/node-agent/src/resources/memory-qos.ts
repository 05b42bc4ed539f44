import type { AnyContainer, NodePod } from "../pod/pod.ts";
import { quantityOf } from "../pod/pod-resources.ts";
import { requestedMemory } from "./qos-reserve.ts";

/** Node settings for the feature gate MemoryQoS. */
interface MemoryQos {
  /** The node's allocatable memory, before eviction thresholds are subtracted. */
  allocatableBytes: number;
  /** `memoryThrottlingFactor`: the fraction of the memory limit above which a container is throttled. */
  throttlingFactor: number;
}

/**
 * Pure: memory protection and throttling limits of a container, as cgroup v2 files.
 * Source: KEP-2570; pkg/kubelet/kuberuntime/kuberuntime_container_linux.go generateLinuxContainerConfig
 */
export function containerMemoryQos(container: AnyContainer, node: MemoryQos): Record<string, string> {
  const { requests, limits } = ("resources" in container ? container.resources : undefined) ?? {};
  const requestBytes = Number(quantityOf(requests, "memory").value());
  const limitBytes = Number(quantityOf(limits, "memory").value());
  const highBytes = Math.trunc((limitBytes || node.allocatableBytes) * node.throttlingFactor);
  return {
    ...(requestBytes > 0 && { "memory.min": String(requestBytes) }),
    // A limit at or below the protected request would leave nothing to reclaim.
    ...(highBytes > requestBytes && { "memory.high": String(highBytes) }),
  };
}

/**
 * Pure: `memory.min` of the QoS cgroups. The cgroup of Guaranteed Pods is the parent of the others, so it includes theirs.
 * Source: pkg/kubelet/cm/qos_container_manager_linux.go setMemoryQoS
 */
export function classMemoryMinimums(pods: readonly NodePod[]): { Guaranteed: number; Burstable: number } {
  const { Guaranteed, Burstable } = requestedMemory(pods);
  return { Guaranteed: Guaranteed + Burstable, Burstable };
}
