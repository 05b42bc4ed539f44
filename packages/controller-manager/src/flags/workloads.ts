import { bool, duration, float, int32 } from "@coxswain/apimachinery/flags/types";

/** Workloads, their scaling and clean-up. */

export const deploymentFlags = {
  "concurrent-deployment-syncs": int32({
    default: 5,
    help: "Deployments that may be synced at once. More answer faster and cost more CPU and network.",
  }),
  "deployment-controller-sync-period": duration({
    default: "30s",
    deprecated: "it has no effect.",
    wired: false,
    help: "The period of syncing deployments.",
  }),
};

export const garbageCollectorFlags = {
  "concurrent-gc-syncs": int32({ default: 20, help: "Workers of the garbage collector." }),
  "enable-garbage-collector": bool({
    default: true,
    help: "Enables the generic garbage collector. Must agree between the API server and the controller manager.",
  }),
};

export const autoscalingFlags = {
  "horizontal-pod-autoscaler-cpu-initialization-period": duration({
    default: "5m0s",
    help: "Time after a pod's start in which its CPU samples may be skipped.",
  }),
  "horizontal-pod-autoscaler-downscale-delay": duration({
    default: "5m0s",
    hidden: true,
    deprecated: "it has no effect.",
    wired: false,
    help: "The former way to keep the autoscaler from scaling down too often.",
  }),
  "horizontal-pod-autoscaler-downscale-stabilization": duration({
    default: "5m0s",
    help: "How long the autoscaler looks back, so as not to scale below what it recommended in that time.",
  }),
  "horizontal-pod-autoscaler-initial-readiness-delay": duration({
    default: "30s",
    help: "Time after a pod's start in which readiness changes count as its first readiness.",
  }),
  "horizontal-pod-autoscaler-sync-period": duration({
    default: "15s",
    help: "The period of syncing the number of pods.",
  }),
  "horizontal-pod-autoscaler-tolerance": float({
    default: 0.1,
    help: "The least change of the ratio of wanted to actual metrics that makes the autoscaler act.",
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

export const namespaceFlags = {
  "concurrent-namespace-syncs": int32({
    default: 10,
    help: "Namespaces that may be synced at once. More finish deletions faster and cost more CPU and network.",
  }),
  "namespace-sync-period": duration({
    default: "5m0s",
    help: "The period of syncing namespace life-cycle updates.",
  }),
};
