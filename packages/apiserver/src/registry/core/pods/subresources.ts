import type { CatalogueConfig } from "../../config.ts";
import type { SubresourceDefinition } from "../../generic/resource.ts";
import { createPodBinding } from "./binding.ts";
import { newEphemeralContainersStrategy } from "./ephemeral-containers.ts";
import { createEviction } from "./eviction.ts";
import { connectAttach, connectExec, connectPortForward } from "./exec.ts";
import { connectLog } from "./log.ts";
import { connectPodProxy } from "./proxy.ts";

export function podSubresources(config: CatalogueConfig): Record<string, SubresourceDefinition> {
  const proxyVerbs = ["create", "delete", "get", "patch", "update"];
  return {
    attach: { kind: "PodAttachOptions", verbs: ["create", "get"], handler: { type: "connect", connect: connectAttach(config) } },
    binding: { kind: "Binding", verbs: ["create"], handler: { type: "object", create: createPodBinding } },
    ...(config.featureEnabled("EphemeralContainers") && {
      ephemeralcontainers: {
        kind: "Pod",
        verbs: ["get", "patch", "update"],
        handler: { type: "strategy" as const, strategy: newEphemeralContainersStrategy(config) },
      },
    }),
    eviction: {
      kind: "Eviction",
      kindGroupVersion: { group: "policy", version: "v1" },
      otherVersions: ["v1beta1"],
      verbs: ["create"],
      handler: { type: "object", create: createEviction },
    },
    exec: { kind: "PodExecOptions", verbs: ["create", "get"], handler: { type: "connect", connect: connectExec(config) } },
    log: { kind: "Pod", verbs: ["get"], handler: { type: "connect", connect: connectLog(config) } },
    portforward: {
      kind: "PodPortForwardOptions",
      verbs: ["create", "get"],
      handler: { type: "connect", connect: connectPortForward(config) },
    },
    proxy: { kind: "PodProxyOptions", verbs: proxyVerbs, handler: { type: "connect", connect: connectPodProxy } },
  };
}
