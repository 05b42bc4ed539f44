/**
 * Sampled numbers of executing and waiting reads and writes; as a share of the limit when a limit is set.
 * Source: k8s.io/apiserver pkg/util/flowcontrol/metrics/metrics.go, pkg/server/filters/maxinflight.go
 */
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { MetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newSampledShares, type SampledShare } from "./sampled-share.ts";

export type RequestKind = "readOnly" | "mutating";
export type ReadWriteLoad = (phase: "executing" | "waiting", kind: RequestKind) => SampledShare;

export function newReadWriteLoad(registry: MetricsRegistry, clock: Clock): ReadWriteLoad {
  return newSampledShares(registry, clock, "apiserver_flowcontrol_read_vs_write_request_count", ["phase", "request_kind"]);
}
