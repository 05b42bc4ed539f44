import type { Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { qosClass } from "@coxswain/apimachinery/quota/qos";
import type { CatalogueConfig } from "../../config.ts";
import type { Strategy, StrategyContext } from "../../generic/strategy.ts";
import { keep } from "../../strategies.ts";
import { mirrorSeccomp } from "./seccomp.ts";
import { podValidationOptions } from "./validation/options.ts";
import { validatePod } from "./validation/pod.ts";
import { validatePodStatusUpdate, validatePodUpdate } from "./validation/update.ts";
import { podWarnings } from "./warnings.ts";

/**
 * Strategy of the resource itself: a new pod gets phase Pending and its QoS class, and the status in requests is ignored.
 * Source: pkg/registry/core/pod/strategy.go
 */
export function newPodStrategy(config: Pick<CatalogueConfig, "allowPrivileged">): Strategy<Pod> {
  const options = (ctx: StrategyContext, old?: Pod) => podValidationOptions(ctx.featureEnabled, old, config.allowPrivileged);
  return {
    namespaceScoped: true,
    allowCreateOnUpdate: false,
    allowUnconditionalUpdate: true,
    resetFields: ["status"],
    prepareForCreate(next) {
      next.status = { phase: "Pending", qosClass: qosClass(next) };
      mirrorSeccomp(next);
    },
    prepareForUpdate: (next, current) => keep(next, current, "status"),
    validateInSteps: (next, current, ctx) =>
      current === undefined ? validatePod(next, options(ctx)) : validatePodUpdate(next, current, options(ctx, current)),
    // Not on updates, which are mostly made by controllers.
    warningsOnCreate: (next) => podWarnings(next),
    gracePeriod: podGracePeriod,
    defaultGarbageCollection: "Background",
  };
}

/** Grace period in seconds: 0 for pods that are not scheduled or have terminated. */
function podGracePeriod(current: Pod, requested: number | undefined): number {
  let period = requested ?? current.spec.terminationGracePeriodSeconds ?? 0;
  const { phase } = current.status ?? {};
  if (!current.spec.nodeName || phase === "Failed" || phase === "Succeeded") period = 0;
  return period < 0 ? 1 : period;
}

/** `/status`, written by the kubelet. */
export function newPodStatusStrategy(config: Pick<CatalogueConfig, "allowPrivileged">): Strategy<Pod> {
  return {
    namespaceScoped: true,
    allowCreateOnUpdate: false,
    allowUnconditionalUpdate: true,
    resetFields: ["spec", "metadata.deletionTimestamp", "metadata.ownerReferences"],
    prepareForUpdate(next, current) {
      next.spec = current.spec;
      delete next.metadata.deletionTimestamp;
      if (current.metadata.deletionTimestamp) next.metadata.deletionTimestamp = current.metadata.deletionTimestamp;
      // The kubelet must not change owner references.
      if (current.metadata.ownerReferences === undefined) delete next.metadata.ownerReferences;
      else next.metadata.ownerReferences = current.metadata.ownerReferences;
      next.status ??= {};
      next.status.qosClass ||= current.status?.qosClass ?? qosClass(current);
    },
    validateInSteps: (next, current = next, ctx) =>
      validatePodStatusUpdate(next, current, podValidationOptions(ctx.featureEnabled, current, config.allowPrivileged)),
  };
}
