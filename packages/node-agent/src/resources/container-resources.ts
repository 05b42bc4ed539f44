import type { AnyContainer, NodePod } from "../pod/pod.ts";
import { quantityOf } from "../pod/pod-resources.ts";
import type { CriInput } from "../runtime/cri-schema.ts";
import type { NodeFacts } from "./node-facts.ts";
import { oomScoreAdj } from "./oom-score.ts";

const minShares = 2;
const maxShares = 262_144;
const sharesPerCpu = 1024;
const minQuotaUs = 1000;

/** CPU shares (cgroup v1) for a number of milli-CPUs. */
export function cpuShares(milliCpu: number): number {
  if (milliCpu === 0) return minShares;
  return Math.min(maxShares, Math.max(minShares, Math.trunc((milliCpu * sharesPerCpu) / 1000)));
}

/** CPU weight (cgroup v2, 1 to 10000) for a number of shares. */
export const cpuWeight = (shares: number): number => 1 + Math.trunc(((shares - minShares) * 9999) / (maxShares - minShares));

/** CFS quota in µs per period. @returns 0 (no quota) when there is no limit */
export function cpuQuotaUs(milliCpu: number, periodUs: number): number {
  if (milliCpu === 0) return 0;
  return Math.max(minQuotaUs, Math.trunc((milliCpu * periodUs) / 1000));
}

/** Pure: the container's resources in CRI terms. Source: pkg/kubelet/kuberuntime/kuberuntime_container_linux.go */
export function containerResources(
  pod: NodePod,
  container: AnyContainer,
  options: Pick<NodeFacts, "memoryCapacityBytes" | "cfsQuota" | "cfsPeriodUs" | "pageSizes" | "swap">,
): CriInput<"LinuxContainerResources"> {
  const { requests, limits } = ("resources" in container ? container.resources : undefined) ?? {};
  const cpuRequest = Number(quantityOf(requests, "cpu").milliValue());
  const cpuLimit = Number(quantityOf(limits, "cpu").milliValue());
  const memoryLimit = Number(quantityOf(limits, "memory").value());
  // A limit without a request implies an equal request; static Pods are not defaulted by the API server.
  const shares = cpuShares(cpuRequest === 0 && cpuLimit !== 0 ? cpuLimit : cpuRequest);
  return {
    cpuShares: shares,
    cpuPeriod: options.cfsQuota ? options.cfsPeriodUs : 0,
    cpuQuota: options.cfsQuota ? cpuQuotaUs(cpuLimit, options.cfsPeriodUs) : 0,
    memoryLimitInBytes: memoryLimit,
    // Limit of memory plus swap; runtimes ignore it for containers without a memory limit.
    ...(options.swap !== undefined && { memorySwapLimitInBytes: options.swap === "any" ? -1 : memoryLimit }),
    oomScoreAdj: oomScoreAdj(pod, container, options.memoryCapacityBytes),
    hugepageLimits: options.pageSizes.map((pageSize) => ({
      pageSize,
      limit: Number(quantityOf(limits, `hugepages-${kubernetesPageSize(pageSize)}`).value()),
    })),
  };
}

/** The kernel writes `2MB` in directory names; resource names use `2Mi`. */
function kubernetesPageSize(pageSize: string): string {
  return pageSize.replace(/B$/, "i");
}
