import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { NodeLifecycleConfig } from "../../config/controller-manager-config.ts";

/** Health of a zone; many silent nodes indicate a network failure rather than node failures. */
export type ZoneState = "Normal" | "PartialDisruption" | "FullDisruption";

/**
 * Zone key `<region>:\0:<zone>`; `""` for nodes without both labels.
 * Source: k8s.io/component-helpers node/topology GetZoneKey
 */
export function zoneOf({ metadata }: Node): string {
  const labels = metadata.labels ?? {};
  const zone = labels["topology.kubernetes.io/zone"] ?? labels["failure-domain.beta.kubernetes.io/zone"] ?? "";
  const region = labels["topology.kubernetes.io/region"] ?? labels["failure-domain.beta.kubernetes.io/region"] ?? "";
  return zone === "" && region === "" ? "" : `${region}:\0:${zone}`;
}

/**
 * FullDisruption without any ready node; PartialDisruption when more than two nodes and at least the threshold are not ready.
 * Source: node_lifecycle_controller.go ComputeZoneState
 */
export function zoneState(ready: number, notReady: number, unhealthyThreshold: number): ZoneState {
  if (ready === 0 && notReady > 0) return "FullDisruption";
  return notReady > 2 && notReady / (notReady + ready) >= unhealthyThreshold ? "PartialDisruption" : "Normal";
}

/** Eviction rate in nodes per second; 0 when all zones are fully disrupted. */
export function evictionRate(
  state: ZoneState,
  nodeCount: number,
  allFullyDisrupted: boolean,
  config: NodeLifecycleConfig,
): number {
  if (allFullyDisrupted) return 0;
  if (state !== "PartialDisruption") return config.evictionRate;
  return nodeCount > config.largeClusterSizeThreshold ? config.secondaryEvictionRate : 0;
}
