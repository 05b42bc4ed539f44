import type { Logger } from "@coxswain/apimachinery/logging/logger";
import type { ContainerRuntime } from "../runtime/runtime.ts";

export interface PodCidr {
  /** @param cidr one range, or one of each family with a comma; `""` for none yet */
  update(cidr: string): Promise<void>;
}

/**
 * Tells the runtime the range of Pod addresses when it is new: `--pod-cidr` without an API server, else the node's
 * `spec.podCIDRs`. What the runtime refuses is told again next time. Source: pkg/kubelet/kubelet_network.go updatePodCIDR
 */
export function newPodCidr({ runtime, log }: { runtime: ContainerRuntime; log: Logger }): PodCidr {
  let told = "";
  return {
    async update(cidr) {
      if (cidr === told || cidr === "") return;
      try {
        await runtime.updatePodCidr(cidr);
      } catch (err) {
        log.error("Pod CIDR update failed", err, { podCIDR: cidr });
        return;
      }
      log.info("Updating Pod CIDR", { originalPodCIDR: told, newPodCIDR: cidr });
      told = cidr;
    },
  };
}
