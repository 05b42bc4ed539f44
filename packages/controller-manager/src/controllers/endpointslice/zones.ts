import { Quantity } from "@coxswain/apimachinery/objects/meta/quantity";
import type { Node, Service } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

/** Share of the cluster's allocatable CPU by zone; the sum is 1. */
export type ZoneShares = ReadonlyMap<string, number>;

const zoneLabel = "topology.kubernetes.io/zone";
const excludedLabels = ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];

/** Value of the label `topology.kubernetes.io/zone`; the deprecated labels are not read. */
export function zoneOf({ metadata }: Node): string | undefined {
  return metadata.labels?.[zoneLabel];
}

/** Whether the Service requests topology hints. */
export function wantsHints({ metadata }: Service): boolean {
  return ["Auto", "auto"].includes(metadata.annotations?.["service.kubernetes.io/topology-aware-hints"] ?? "");
}

/**
 * Pure: computes the CPU shares of zones with ready nodes, excluding control plane nodes. A single node without a zone
 * or CPU makes the result undefined.
 * @returns undefined with fewer than two zones
 * Source: endpointslice/topologycache SetNodes
 */
export function zoneShares(nodes: readonly Node[]): ZoneShares | undefined {
  const byZone = new Map<string, number>();
  let total = 0;
  for (const node of nodes) {
    const cpu = cpuOf(node);
    if (cpu === undefined) continue;
    const zone = zoneOf(node) ?? "";
    if (zone === "" || cpu === 0) return undefined;
    byZone.set(zone, (byZone.get(zone) ?? 0) + cpu);
    total += cpu;
  }
  return byZone.size < 2 ? undefined : new Map([...byZone].map(([zone, cpu]) => [zone, cpu / total]));
}

/** Whether the change of a node may change the shares. */
export function changesShares(old: Node, now: Node): boolean {
  return cpuOf(old) !== cpuOf(now) || zoneOf(old) !== zoneOf(now);
}

/** Allocatable CPU in millicores; undefined for nodes that are excluded or not ready. */
function cpuOf({ metadata, status }: Node): number | undefined {
  if (excludedLabels.some((label) => metadata.labels?.[label] !== undefined)) return undefined;
  if (!status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True")) return undefined;
  return Number(Quantity.tryParse(String(status.allocatable?.["cpu"] ?? "0"))?.milliValue() ?? 0);
}
