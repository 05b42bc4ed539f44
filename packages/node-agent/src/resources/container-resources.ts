import type { AnyContainer, NodePod } from "../pods/pod.ts";
import type { NodeFacts } from "../pods/pod-runner.ts";
import type { CriInput } from "../runtime/cri-schema.ts";
import { oomScoreAdj } from "./oom-score.ts";
import { quantityOf } from "./pod-resources.ts";

const minShares = 2;
const maxShares = 262_144;
const sharesPerCpu = 1024;
const minQuotaUs = 1000;

/** Kernel's CPU weight for thousandths of a CPU. */
export function cpuShares(milliCpu: number): number {
  if (milliCpu === 0) return minShares;
  return Math.min(maxShares, Math.max(minShares, Math.trunc((milliCpu * sharesPerCpu) / 1000)));
}

/** The same weight as version 2 of the hierarchy counts it, from 1 to 10000. */
export const cpuWeight = (shares: number): number => 1 + Math.trunc(((shares - minShares) * 9999) / (maxShares - minShares));

/** @returns 0, no quota, for no limit. */
export function cpuQuotaUs(milliCpu: number, periodUs: number): number {
  if (milliCpu === 0) return 0;
  return Math.max(minQuotaUs, Math.trunc((milliCpu * periodUs) / 1000));
}

/** Pure. Source: pkg/kubelet/kuberuntime/kuberuntime_container_linux.go */
export function containerResources(
  pod: NodePod,
  container: AnyContainer,
  options: Pick<NodeFacts, "memoryCapacityBytes" | "cfsQuota" | "cfsPeriodUs" | "pageSizes" | "swap">,
): CriInput<"LinuxContainerResources"> {
  const { requests, limits } = ("resources" in container ? container.resources : undefined) ?? {};
  const cpuRequest = Number(quantityOf(requests, "cpu").milliValue());
  const cpuLimit = Number(quantityOf(limits, "cpu").milliValue());
  const memoryLimit = Number(quantityOf(limits, "memory").value());
  // A limit without a request is a request too, for static Pods that nobody has defaulted.
  const shares = cpuShares(cpuRequest === 0 && cpuLimit !== 0 ? cpuLimit : cpuRequest);
  return {
    cpuShares: shares,
    cpuPeriod: options.cfsQuota ? options.cfsPeriodUs : 0,
    cpuQuota: options.cfsQuota ? cpuQuotaUs(cpuLimit, options.cfsPeriodUs) : 0,
    memoryLimitInBytes: memoryLimit,
    // Of memory and swap together; a runtime ignores it where memory has no limit.
    ...(options.swap !== undefined && { memorySwapLimitInBytes: options.swap === "any" ? -1 : memoryLimit }),
    oomScoreAdj: oomScoreAdj(pod, container, options.memoryCapacityBytes),
    hugepageLimits: options.pageSizes.map((pageSize) => ({
      pageSize,
      limit: Number(quantityOf(limits, `hugepages-${kubernetesPageSize(pageSize)}`).value()),
    })),
  };
}

/** `2MB` of the kernel's folder names is `2Mi` in resource names. */
function kubernetesPageSize(pageSize: string): string {
  return pageSize.replace(/B$/, "i");
}
