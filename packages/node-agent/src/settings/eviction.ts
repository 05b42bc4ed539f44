import { duration, int32, mapStringString } from "@coxswain/apimachinery/flags/types";
import { inFile } from "./notices.ts";

/** Eviction of pods from a node under resource pressure. */
export const evictionSettings = {
  evictionHard: mapStringString({
    flag: "eviction-hard",
    field: "evictionHard",
    default: { "imagefs.available": "15%", "memory.available": "100Mi", "nodefs.available": "10%", "nodefs.inodesFree": "5%" },
    separator: "<",
    deprecated: inFile,
    help: "Thresholds (memory.available<1Gi, say) that, when met, evict a pod at once.",
  }),
  evictionSoft: mapStringString({
    flag: "eviction-soft",
    field: "evictionSoft",
    separator: "<",
    deprecated: inFile,
    help: "Thresholds (memory.available<1.5Gi, say) that evict a pod when met over their grace period.",
  }),
  /** See `AgentConfig.evictionSoftGraceMs`. */
  evictionSoftGrace: mapStringString({
    flag: "eviction-soft-grace-period",
    field: "evictionSoftGracePeriod",
    deprecated: inFile,
    help: "Grace periods (memory.available=1m30s, say) for how long a soft threshold must be met before a pod is evicted.",
  }),
  evictionMinReclaim: mapStringString({
    flag: "eviction-minimum-reclaim",
    field: "evictionMinimumReclaim",
    deprecated: inFile,
    help: "Least amounts (imagefs.available=2Gi, say) that are reclaimed when a resource is short.",
  }),
  evictionMaxPodGraceSeconds: int32({
    flag: "eviction-max-pod-grace-period",
    field: "evictionMaxPodGracePeriod",
    deprecated: inFile,
    help: "Longest grace period in seconds of pods ended by a soft threshold. Negative: the pod's own value.",
  }),
  evictionTransitionMs: duration({
    flag: "eviction-pressure-transition-period",
    field: "evictionPressureTransitionPeriod",
    default: "5m0s",
    deprecated: inFile,
    zeroIsDefault: "inFile",
    help: "How long the kubelet waits before it leaves a pressure condition.",
  }),
};
