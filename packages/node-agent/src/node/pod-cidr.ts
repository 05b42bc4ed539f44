import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { ContainerRuntime } from "../runtime/runtime.ts";

/** The Pod CIDR as configured in the runtime. */
export interface PodCidr {
  /** @param cidr one CIDR, or an IPv4 and an IPv6 CIDR separated by a comma; `""` when not known yet */
  update(cidr: string): Promise<void>;
}

/**
 * Configures the runtime's Pod CIDR when it changes: `--pod-cidr` in standalone mode, else the node's `spec.podCIDRs`. A
 * failed update is retried by the next call. Source: pkg/kubelet/kubelet_network.go updatePodCIDR
 */
export function newPodCidr({ runtime, log }: { runtime: ContainerRuntime; log: Logger }): PodCidr {
  let reported = "";
  return {
    async update(cidr) {
      if (cidr === reported || cidr === "") return;
      try {
        await runtime.updatePodCidr(cidr);
      } catch (err) {
        log.error("Pod CIDR update failed", err, { podCIDR: cidr });
        return;
      }
      log.info("Updating Pod CIDR", { originalPodCIDR: reported, newPodCIDR: cidr });
      reported = cidr;
    },
  };
}
