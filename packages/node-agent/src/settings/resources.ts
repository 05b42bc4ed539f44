import { durationBetween, fraction, oneOf } from "@coxswain/apimachinery/flags/rules";
import { bool, duration, float, mapStringString, string, stringSlice } from "@coxswain/apimachinery/flags/types";
import { inFile, leaving } from "./notices.ts";
import { reservedMemoryShape } from "./structures.ts";

/** CPUs, memory and cgroups: reservations and resource managers. */
export const resourceSettings = {
  cgroupsPerQos: bool({
    flag: "cgroups-per-qos",
    field: "cgroupsPerQOS",
    default: true,
    deprecated: inFile,
    help: "Creates a cgroup hierarchy by quality of service; pods' cgroups are below it.",
  }),
  /** `systemd`; any other value selects `cgroupfs`. */
  cgroupDriver: string({
    flag: "cgroup-driver",
    field: "cgroupDriver",
    default: "cgroupfs",
    deprecated: inFile,
    help: "The driver that the kubelet manipulates cgroups of the host with. Possible values: 'cgroupfs', 'systemd'.",
  }),
  cgroupRoot: string({
    flag: "cgroup-root",
    field: "cgroupRoot",
    deprecated: inFile,
    help: "Root cgroup of pods, as far as the runtime can honour it. Empty: the runtime's default.",
  }),
  systemCgroups: string({
    flag: "system-cgroups",
    field: "systemCgroups",
    deprecated: leaving,
    help: "Absolute name of the cgroup for processes that are in no container yet. Empty: none.",
  }),
  cpuCfsQuota: bool({
    flag: "cpu-cfs-quota",
    field: "cpuCFSQuota",
    default: true,
    deprecated: inFile,
    help: "Enforces CPU limits of containers by CFS quota.",
  }),
  cpuCfsPeriodMs: duration({
    flag: "cpu-cfs-quota-period",
    field: "cpuCFSQuotaPeriod",
    default: "100ms",
    deprecated: inFile,
    refusedWithout: "CustomCPUCFSQuotaPeriod",
    must: durationBetween(1, 1000, ["1ms", "1sec"]),
    zeroIsDefault: "inFile",
    help: "The period of CFS quota, cpu.cfs_period_us.",
  }),
  kubeReserved: mapStringString({
    flag: "kube-reserved",
    field: "kubeReserved",
    deprecated: inFile,
    help: "Resources reserved for Kubernetes' own components, as name=quantity pairs (cpu=200m,memory=500Mi,ephemeral-storage=1Gi,pid=1000).",
  }),
  systemReserved: mapStringString({
    flag: "system-reserved",
    field: "systemReserved",
    deprecated: leaving,
    help: "Resources reserved for what is not Kubernetes, as name=quantity pairs (cpu=200m,memory=500Mi,ephemeral-storage=1Gi,pid=1000).",
  }),
  kubeReservedCgroup: string({
    flag: "kube-reserved-cgroup",
    field: "kubeReservedCgroup",
    deprecated: inFile,
    help: "Absolute name of the top cgroup of Kubernetes' own components, for --kube-reserved.",
  }),
  systemReservedCgroup: string({
    flag: "system-reserved-cgroup",
    field: "systemReservedCgroup",
    deprecated: inFile,
    help: "Absolute name of the top cgroup of what is not Kubernetes, for --system-reserved.",
  }),
  /** A CPU list such as `0,2-3`; `""` for none. */
  reservedCpus: string({
    flag: "reserved-cpus",
    field: "reservedSystemCPUs",
    deprecated: inFile,
    help: "CPUs reserved for the system and Kubernetes, as a list or ranges. It replaces the cpu of --system-reserved and --kube-reserved.",
  }),
  /** See `AgentConfig.reservedMemory` for what is parsed of it. */
  reservedNumaMemory: stringSlice({
    flag: "reserved-memory",
    field: "reservedMemory",
    shape: [reservedMemoryShape],
    help: "Memory reserved for each NUMA node, for the Static memory manager: '<node>:<type>=<quantity>[,<type>=<quantity>]', semicolon separated.",
  }),
  /** `memory` → `50%`. */
  qosReserved: mapStringString({
    flag: "qos-reserved",
    field: "qosReserved",
    deprecated: inFile,
    help: "[Alpha] Percentages of resources (memory only) reserved at the level of quality of service, as name=percentage pairs.",
  }),
  enforceNodeAllocatable: stringSlice({
    flag: "enforce-node-allocatable",
    field: "enforceNodeAllocatable",
    default: ["pods"],
    deprecated: inFile,
    help: "What of node allocatable the kubelet enforces: 'none', 'pods', 'system-reserved', 'kube-reserved'. The last two need --system-reserved-cgroup and --kube-reserved-cgroup.",
  }),
  allocatableIgnoresEviction: bool({
    flag: "experimental-allocatable-ignore-eviction",
    deprecated: inFile,
    help: "When true, hard eviction thresholds are left out of node allocatable.",
  }),
  cpuManagerPolicy: string({
    flag: "cpu-manager-policy",
    field: "cpuManagerPolicy",
    default: "none",
    deprecated: inFile,
    help: "The CPU manager's policy. Possible values: 'none', 'static'.",
  }),
  cpuManagerPolicyOptions: mapStringString({
    flag: "cpu-manager-policy-options",
    field: "cpuManagerPolicyOptions",
    deprecated: inFile,
    help: "key=value options that refine the CPU manager's policy.",
  }),
  cpuManagerReconcileMs: duration({
    flag: "cpu-manager-reconcile-period",
    field: "cpuManagerReconcilePeriod",
    default: "10s",
    deprecated: inFile,
    zeroIsDefault: "inFile",
    help: "The period in which the CPU manager reconciles.",
  }),
  memoryManagerPolicy: string({
    flag: "memory-manager-policy",
    field: "memoryManagerPolicy",
    default: "None",
    deprecated: inFile,
    help: "The memory manager's policy. Possible values: 'None', 'Static'.",
  }),
  topologyManagerPolicy: string({
    flag: "topology-manager-policy",
    field: "topologyManagerPolicy",
    default: "none",
    deprecated: inFile,
    refusedWithout: "TopologyManager",
    must: oneOf(
      ["none", "best-effort", "restricted", "single-numa-node"],
      (value, name) => `${name} ${value} must be one of: ["none" "best-effort" "restricted" "single-numa-node"]`,
    ),
    help: "The topology manager's policy. Possible values: 'none', 'best-effort', 'restricted', 'single-numa-node'.",
  }),
  topologyManagerScope: string({
    flag: "topology-manager-scope",
    field: "topologyManagerScope",
    default: "container",
    deprecated: inFile,
    refusedWithout: "TopologyManager",
    must: oneOf(["container", "pod"], (value, name) => `${name} ${value} must be one of: "container", or "pod"`),
    help: "The scope of topology hints. Possible values: 'container', 'pod'.",
  }),
  swapBehavior: string({
    field: "memorySwap.swapBehavior",
    help: "How pods use swap: LimitedSwap (which is meant when it is empty) or UnlimitedSwap. Needs the gate NodeSwap.",
  }),
  memoryThrottlingFactor: float({
    field: "memoryThrottlingFactor",
    default: 0.8,
    must: fraction,
    help: "The share of the memory limit from which a container is throttled. Needs the gate MemoryQoS.",
  }),
};
