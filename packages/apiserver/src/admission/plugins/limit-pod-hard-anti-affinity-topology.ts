/**
 * Rejects required pod anti-affinity with a topology key other than kubernetes.io/hostname.
 * Source: plugin/pkg/admission/antiaffinity/admission.go
 */
import { forbidden } from "@coxswain/apimachinery/objects/errors/status-error";
import type { AdmissionPlugin } from "../plugin.ts";
import { podOf } from "./pod-of.ts";

const hostname = "kubernetes.io/hostname";

export const limitPodHardAntiAffinityTopology = (): AdmissionPlugin => ({
  name: "LimitPodHardAntiAffinityTopology",
  handles: (operation) => operation === "CREATE" || operation === "UPDATE",
  async validate(attributes) {
    const pod = podOf(attributes);
    for (const { topologyKey } of pod?.spec.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []) {
      if (topologyKey === hostname) continue;
      throw forbidden(
        attributes.resource,
        pod?.metadata.name ?? "",
        `affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey ${topologyKey} but only key ${hostname} is allowed`,
      );
    }
  },
});
