import type { AnyContainer, NodePod } from "../pods/pod.ts";
import { quantityOf } from "./pod-resources.ts";
import { requestedMemory } from "./qos-reserve.ts";

/** What the gate MemoryQoS needs to know of the node. */
export interface MemoryQos {
  /** What the node has for Pods, before eviction keeps anything free. */
  allocatableBytes: number;
  /** `memoryThrottlingFactor`: the share of its limit from which on a container is slowed down. */
  throttlingFactor: number;
}

/**
 * Pure: what the kernel keeps for a container and where it begins to reclaim from it, as files of version 2 of the
 * hierarchy. Source: KEP-2570; pkg/kubelet/kuberuntime/kuberuntime_container_linux.go generateLinuxContainerConfig
 */
export function containerMemoryQos(container: AnyContainer, node: MemoryQos): Record<string, string> {
  const { requests, limits } = ("resources" in container ? container.resources : undefined) ?? {};
  const requestBytes = Number(quantityOf(requests, "memory").value());
  const limitBytes = Number(quantityOf(limits, "memory").value());
  const highBytes = Math.trunc((limitBytes || node.allocatableBytes) * node.throttlingFactor);
  return {
    ...(requestBytes > 0 && { "memory.min": String(requestBytes) }),
    // Below its request there would be nothing that may be reclaimed.
    ...(highBytes > requestBytes && { "memory.high": String(highBytes) }),
  };
}

/**
 * Pure: what is kept for the classes with requests. The cgroup of Guaranteed Pods is the one that the others are in.
 * Source: pkg/kubelet/cm/qos_container_manager_linux.go setMemoryQoS
 */
export function classMemoryMinimums(pods: readonly NodePod[]): { Guaranteed: number; Burstable: number } {
  const { Guaranteed, Burstable } = requestedMemory(pods);
  return { Guaranteed: Guaranteed + Burstable, Burstable };
}
