import type { Node } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { NodeLifecycleConfig } from "../../config.ts";

/** How a zone as a whole is; many silent nodes are more likely a broken network than broken nodes. */
export type ZoneState = "Normal" | "PartialDisruption" | "FullDisruption";

/** `<region>:\0:<zone>`, `""` where nodes have neither. Source: k8s.io/component-helpers node/topology GetZoneKey */
export function zoneOf({ metadata }: Node): string {
  const labels = metadata.labels ?? {};
  const zone = labels["topology.kubernetes.io/zone"] ?? labels["failure-domain.beta.kubernetes.io/zone"] ?? "";
  const region = labels["topology.kubernetes.io/region"] ?? labels["failure-domain.beta.kubernetes.io/region"] ?? "";
  return zone === "" && region === "" ? "" : `${region}:\0:${zone}`;
}

/** Source: node_lifecycle_controller.go ComputeZoneState */
export function zoneState(ready: number, notReady: number, unhealthyThreshold: number): ZoneState {
  if (ready === 0 && notReady > 0) return "FullDisruption";
  return notReady > 2 && notReady / (notReady + ready) >= unhealthyThreshold ? "PartialDisruption" : "Normal";
}

/** Nodes a second from which Pods may be evicted; when every zone is fully disrupted, none at all. */
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
