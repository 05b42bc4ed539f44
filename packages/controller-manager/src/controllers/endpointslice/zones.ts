import { Quantity } from "@coxswain/apimachinery/meta/quantity";
import type { Node, Service } from "@coxswain/apimachinery/schema/kinds/core/v1";

/** Which part of the cluster's CPU a zone has; they add up to 1. */
export type ZoneShares = ReadonlyMap<string, number>;

const zoneLabel = "topology.kubernetes.io/zone";
const excludedLabels = ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];

export function zoneOf({ metadata }: Node): string | undefined {
  return metadata.labels?.[zoneLabel];
}

/** The service asks for hints. */
export function wantsHints({ metadata }: Service): boolean {
  return ["Auto", "auto"].includes(metadata.annotations?.["service.kubernetes.io/topology-aware-hints"] ?? "");
}

/**
 * Pure: the zones of the nodes that run pods. One node that does not say where it is, or how much it has, is enough for
 * nothing to be said of any.
 * @returns undefined without two zones
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

/** A change of a node that may change the shares. */
export function movesShares(old: Node, now: Node): boolean {
  return cpuOf(old) !== cpuOf(now) || zoneOf(old) !== zoneOf(now);
}

/** In thousandths; undefined for a node that does not count. */
function cpuOf({ metadata, status }: Node): number | undefined {
  if (excludedLabels.some((label) => metadata.labels?.[label] !== undefined)) return undefined;
  if (!status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True")) return undefined;
  return Number(Quantity.tryParse(String(status.allocatable?.["cpu"] ?? "0"))?.milliValue() ?? 0);
}
