import { bool, duration, float, int32 } from "@coxswain/apimachinery/flags/types";

/** Workloads, their scaling and clean-up. */

export const deploymentFlags = {
  "deployment-controller-sync-period": duration({
    default: "30s",
    deprecated: "it has no effect.",
    wired: false,
    help: "The period of syncing deployments.",
  }),
};

export const garbageCollectorSettings = {
  garbageCollector: bool({
    flag: "enable-garbage-collector",
    default: true,
    help: "Enables the generic garbage collector. Must agree between the API server and the controller manager.",
  }),
};

export const autoscalingSettings = {
  syncPeriodMs: duration({
    flag: "horizontal-pod-autoscaler-sync-period",
    default: "15s",
    help: "The period of syncing the number of pods.",
  }),
  downscaleStabilizationMs: duration({
    flag: "horizontal-pod-autoscaler-downscale-stabilization",
    default: "5m0s",
    help: "How long the autoscaler looks back, so as not to scale below what it recommended in that time.",
  }),
};

export const autoscalingRuleSettings = {
  tolerance: float({
    flag: "horizontal-pod-autoscaler-tolerance",
    default: 0.1,
    help: "The least change of the ratio of wanted to actual metrics that makes the autoscaler act.",
  }),
  cpuInitializationMs: duration({
    flag: "horizontal-pod-autoscaler-cpu-initialization-period",
    default: "5m0s",
    help: "Time after a pod's start in which its CPU samples may be skipped.",
  }),
  initialReadinessMs: duration({
    flag: "horizontal-pod-autoscaler-initial-readiness-delay",
    default: "30s",
    help: "Time after a pod's start in which readiness changes count as its first readiness.",
  }),
};

/** Flags of former releases, without effect. */
export const formerAutoscalingFlags = {
  "horizontal-pod-autoscaler-downscale-delay": duration({
    default: "5m0s",
    hidden: true,
    deprecated: "it has no effect.",
    wired: false,
    help: "The former way to keep the autoscaler from scaling down too often.",
  }),
  "horizontal-pod-autoscaler-upscale-delay": duration({
    default: "3m0s",
    hidden: true,
    deprecated: "it has no effect.",
    wired: false,
    help: "The former way to keep the autoscaler from scaling up too often.",
  }),
  "horizontal-pod-autoscaler-use-rest-clients": bool({
    default: true,
    hidden: true,
    deprecated: "will be removed in a future version.",
    wired: false,
    help: "Uses REST clients for metrics.",
  }),
};

export const namespaceSettings = {
  namespaceSyncPeriodMs: duration({
    flag: "namespace-sync-period",
    default: "5m0s",
    help: "The period of syncing namespace life-cycle updates.",
  }),
};

export const quotaSettings = {
  resourceQuotaSyncPeriodMs: duration({
    flag: "resource-quota-sync-period",
    default: "5m0s",
    help: "The period of syncing quota usage in the system.",
  }),
};

export const podGcSettings = {
  /** Number of terminated Pods to keep; 0 or less disables the deletion. */
  terminatedPodGcThreshold: int32({
    flag: "terminated-pod-gc-threshold",
    default: 12500,
    help: "How many terminated pods may exist before the garbage collector deletes some. 0 or less turns it off.",
  }),
};
