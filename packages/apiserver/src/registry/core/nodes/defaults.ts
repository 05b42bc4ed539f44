import { deepClone } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { Node, NodeSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

/** Allocatable defaults to capacity. Source: pkg/apis/core/v1/defaults.go SetDefaults_NodeStatus */
export function defaultNode({ spec, status }: Node): void {
  if (spec) mirrorPodCidrs(spec);
  if (status?.capacity && status.allocatable === undefined) status.allocatable = deepClone(status.capacity);
}

/** `podCIDR` mirrors the first of `podCIDRs` and wins when they differ. Source: pkg/apis/core/v1/conversion.go */
function mirrorPodCidrs(spec: NodeSpec): void {
  if (spec.podCIDR && spec.podCIDRs?.[0] !== spec.podCIDR) spec.podCIDRs = [spec.podCIDR];
  else if (spec.podCIDRs?.[0]) spec.podCIDR = spec.podCIDRs[0];
}
