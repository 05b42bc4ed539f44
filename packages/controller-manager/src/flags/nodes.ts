import { bool, duration, float, int, int32, string } from "@coxswain/apimachinery/flags/types";

/** Nodes: address ranges, health, eviction. */

export const nodeIpamSettings = {
  /** 0: the default mask size of the address family. */
  maskSize: int32({
    flag: "node-cidr-mask-size",
    help: "Mask size of a node's CIDR. Default is 24 for IPv4 and 64 for IPv6.",
  }),
  maskSizeIpv4: int32({
    flag: "node-cidr-mask-size-ipv4",
    help: "Mask size of a node's IPv4 CIDR in a dual-stack cluster. Default is 24.",
  }),
  maskSizeIpv6: int32({
    flag: "node-cidr-mask-size-ipv6",
    help: "Mask size of a node's IPv6 CIDR in a dual-stack cluster. Default is 64.",
  }),
  serviceCidrs: string({
    flag: "service-cluster-ip-range",
    help: "CIDR ranges from which cluster IPs of services are given; they must not overlap with those of nodes and pods. At most two, one of each family.",
  }),
};

export const nodeLifecycleSettings = {
  monitorGraceMs: duration({
    flag: "node-monitor-grace-period",
    default: "40s",
    help: "How long a running node may be silent before it is marked unhealthy. Must be several times the kubelet's status update period.",
  }),
  startupGraceMs: duration({
    flag: "node-startup-grace-period",
    default: "1m0s",
    help: "How long a starting node may be silent before it is marked unhealthy.",
  }),
  podEvictionTimeoutMs: duration({
    flag: "pod-eviction-timeout",
    default: "5m0s",
    help: "The grace period for deleting pods on failed nodes.",
  }),
  taintManager: bool({
    flag: "enable-taint-manager",
    default: true,
    help: "If true, pods are evicted from nodes with NoExecute taints that they do not tolerate.",
  }),
  evictionRate: float({
    flag: "node-eviction-rate",
    default: 0.1,
    help: "Nodes a second whose pods are deleted when a node fails while its zone is healthy. Without zones, the entire cluster is one zone.",
  }),
  secondaryEvictionRate: float({
    flag: "secondary-node-eviction-rate",
    default: 0.01,
    help: "Nodes a second whose pods are deleted when a node fails while its zone is unhealthy. Taken as 0 in small clusters.",
  }),
  largeClusterSizeThreshold: int32({
    flag: "large-cluster-size-threshold",
    default: 50,
    help: "Number of nodes from which a cluster counts as large for evictions. In smaller ones --secondary-node-eviction-rate is taken as 0.",
  }),
  unhealthyZoneThreshold: float({
    flag: "unhealthy-zone-threshold",
    default: 0.55,
    help: "The share of nodes in a zone that must not be ready (three at least) for the zone to be unhealthy.",
  }),
};

/** Flags of former releases, without effect. */
export const formerNodeFlags = {
  "deleting-pods-burst": int({ hidden: true, deprecated: "it has no effect.", wired: false, help: "Burst of node evictions." }),
  "deleting-pods-qps": float({
    default: 0.1,
    hidden: true,
    deprecated: "it has no effect.",
    wired: false,
    help: "Rate of node evictions.",
  }),
  "register-retry-count": int({
    default: 10,
    hidden: true,
    deprecated: "it has no effect.",
    wired: false,
    help: "Retries of the first node registration.",
  }),
};
