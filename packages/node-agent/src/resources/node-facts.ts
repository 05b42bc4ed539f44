import type { ResourceList } from "../pod/pod-resources.ts";

/** Node properties that the downward API exposes and that container limits are computed from. */
export interface NodeFacts {
  name: string;
  ips(): readonly string[];
  allocatable(): ResourceList;
  memoryCapacityBytes: number;
  cfsQuota: boolean;
  cfsPeriodUs: number;
  pageSizes: readonly string[];
  /** `any`: containers may swap beyond their memory limit. Undefined: the runtime decides. */
  swap?: "limited" | "any" | undefined;
  clusterDomain: string;
}
