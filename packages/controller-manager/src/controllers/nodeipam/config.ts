import type { SettingValues } from "@coxswain/apimachinery/flags/settings";
import { parseCidr } from "@coxswain/apimachinery/objects/meta/ip";
import type { NodeIpamConfig, NodeRange } from "../../config/controller-manager-config.ts";
import type { nodeCidrSettings } from "../../flags/generic.ts";
import type { nodeIpamSettings } from "../../flags/nodes.ts";
import { tooLarge } from "./cidr-set.ts";

type NodeIpamSettings = SettingValues<typeof nodeCidrSettings & typeof nodeIpamSettings>;

/**
 * Validates the flags and computes the configuration of the nodeipam controller.
 * @param errors receives error texts, worded as upstream's
 * @param set names of the flags given on the command line
 * Source: cmd/kube-controller-manager/app/core.go startNodeIpamController, setNodeCIDRMaskSizes
 */
export function nodeIpamConfigOf(
  values: NodeIpamSettings,
  errors: string[],
  set: ReadonlySet<string> = new Set(),
): NodeIpamConfig {
  const serviceCidrs = values.serviceCidrs === "" ? [] : values.serviceCidrs.split(",");
  if (serviceCidrs.length > 2) errors.push("--service-cluster-ip-range can not contain more than two entries");
  if (!values.allocates) {
    // An explicit false is intended, and the CIDRs are then informational. Without the flag, the user probably expects
    // CIDRs to be assigned.
    const isForgotten = !set.has("allocate-node-cidrs");
    if (isForgotten && values.clusterCidrs !== "") errors.push("--cluster-cidr needs --allocate-node-cidrs=true");
    if (isForgotten && values.serviceCidrs !== "") errors.push("--service-cluster-ip-range needs --allocate-node-cidrs=true");
    return { ranges: [], serviceCidrs: [] };
  }
  if (values.allocatorType !== "RangeAllocator") {
    errors.push(`--cidr-allocator-type is set to '${values.allocatorType}' but cloud provider is not configured`);
    return { ranges: [], serviceCidrs: [] };
  }
  const families = serviceCidrs.map((cidr) => parseCidr(cidr.trim())?.family);
  if (families.length === 2 && families[0] !== undefined && families[0] === families[1])
    errors.push("serviceCIDR and secondaryServiceCIDR are not dualstack (from different IPfamiles)");
  return { ranges: rangesOf(values, errors), serviceCidrs: serviceCidrs.map((cidr) => cidr.trim()) };
}

const defaultMaskSizes = { 4: 24, 6: 64 } as const;

function rangesOf(values: NodeIpamSettings, errors: string[]): NodeRange[] {
  const cidrs = values.clusterCidrs.trim().split(",");
  const families: (4 | 6)[] = [];
  for (const cidr of cidrs) {
    const family = parseCidr(cidr)?.family;
    if (family === undefined)
      errors.push(`failed to parse cidr value:${JSON.stringify(cidr)} with error:invalid CIDR address: ${cidr}`);
    else families.push(family);
  }
  if (families.length < cidrs.length) return [];
  const isDual = new Set(families).size === 2;
  if (cidrs.length > 1 && !isDual)
    errors.push(
      `len of ClusterCIDRs==${cidrs.length} and they are not configured as dual stack (at least one from each IPFamily)`,
    );
  else if (cidrs.length > 2) errors.push(`length of clusterCIDRs is:${cidrs.length} more than max allowed of 2`);
  const sizes = maskSizesOf(values, isDual ? "dual" : families[0]!, errors);
  return cidrs.map((cidr, i) => {
    const family = families[i]!;
    const maskSize = sizes[family];
    const { bits } = parseCidr(cidr)!;
    if (bits > maskSize || maskSize > (family === 4 ? 32 : 128)) {
      errors.push(
        "Controller: Invalid --cluster-cidr, mask size of cluster CIDR must be less than or equal to --node-cidr-mask-size configured for CIDR family",
      );
    } else if (tooLarge(family, bits, maskSize)) {
      errors.push("New CIDR set failed; the node CIDR size is too big");
    }
    return { cidr, maskSize };
  });
}

function maskSizesOf(
  { maskSize: either, maskSizeIpv4: ipv4, maskSizeIpv6: ipv6 }: NodeIpamSettings,
  stack: 4 | 6 | "dual",
  errors: string[],
): { readonly 4: number; readonly 6: number } {
  const own = { 4: ipv4 || defaultMaskSizes[4], 6: ipv6 || defaultMaskSizes[6] };
  if (stack === "dual") {
    if (either !== 0) errors.push("usage of --node-cidr-mask-size is not allowed with dual-stack clusters");
    return own;
  }
  if (either !== 0) {
    if (ipv4 !== 0 || ipv6 !== 0) {
      errors.push(
        "usage of --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6 is not allowed if --node-cidr-mask-size is set. For dual-stack clusters please unset it and use IPFamily specific flags",
      );
    }
    return { 4: either, 6: either };
  }
  if (ipv4 !== 0 && stack === 6)
    errors.push("usage of --node-cidr-mask-size-ipv4 is not allowed for a single-stack IPv6 cluster");
  if (ipv6 !== 0 && stack === 4)
    errors.push("usage of --node-cidr-mask-size-ipv6 is not allowed for a single-stack IPv4 cluster");
  return own;
}
