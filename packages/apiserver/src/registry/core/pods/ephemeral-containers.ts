import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { CatalogueConfig } from "../../config.ts";
import type { Strategy } from "../../generic/strategy.ts";
import { podValidationOptions } from "./validation/options.ts";
import { validateEphemeralContainersUpdate } from "./validation/update.ts";

/**
 * `/ephemeralcontainers`: adds ephemeral containers to a pod; all other fields are kept.
 * Source: pkg/registry/core/pod/strategy.go podEphemeralContainersStrategy
 */
export function newEphemeralContainersStrategy(config: Pick<CatalogueConfig, "allowPrivileged">): Strategy<Pod> {
  return {
    namespaceScoped: true,
    allowCreateOnUpdate: false,
    allowUnconditionalUpdate: true,
    resetFields: ["status"],
    prepareForUpdate(next, current) {
      const { ephemeralContainers } = next.spec;
      next.spec = { ...current.spec };
      if (ephemeralContainers === undefined) delete next.spec.ephemeralContainers;
      else next.spec.ephemeralContainers = ephemeralContainers;
      next.metadata = {
        ...current.metadata,
        ...(next.metadata.resourceVersion ? { resourceVersion: next.metadata.resourceVersion } : {}),
      };
      if (current.status === undefined) delete next.status;
      else next.status = current.status;
    },
    validateInSteps: (next, current = next, ctx) =>
      validateEphemeralContainersUpdate(next, current, podValidationOptions(ctx.featureEnabled, current, config.allowPrivileged)),
  };
}
