import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Strategy } from "../../generic/strategy.ts";
import { keep } from "../../strategies.ts";
import { validateNode, validateNodeUpdate } from "./validation.ts";

const dynamicConfig = "DynamicKubeletConfig";

/** Source: pkg/registry/core/node/strategy.go */
export const nodeStrategy: Strategy<Node> = {
  namespaceScoped: false,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: true,
  resetFields: ["status"],
  prepareForCreate(next, ctx) {
    if (ctx.featureEnabled(dynamicConfig)) return;
    delete next.spec?.configSource;
    delete next.status?.config;
  },
  prepareForUpdate(next, current, ctx) {
    keep(next, current, "status");
    if (!ctx.featureEnabled(dynamicConfig) && !current.spec?.configSource) delete next.spec?.configSource;
  },
  *validateInSteps(next, current) {
    const errors = yield* validateNode(next);
    return current === undefined ? errors : [...errors, ...(yield* validateNodeUpdate(next, current))];
  },
  warningsOnCreate: configSourceWarnings,
  warningsOnUpdate: configSourceWarnings,
};

export const nodeStatusStrategy: Strategy<Node> = {
  namespaceScoped: false,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: true,
  resetFields: ["spec"],
  prepareForUpdate(next, current, ctx) {
    keep(next, current, "spec");
    if (!ctx.featureEnabled(dynamicConfig) && !current.status?.config) delete next.status?.config;
  },
  // Without a current node, which no request leads to, nothing has changed.
  validateInSteps: (next, current) => validateNodeUpdate(next, current ?? next),
};

function configSourceWarnings({ spec }: Node): string[] {
  return spec?.configSource ? ["spec.configSource: deprecated in v1.22, support removal is planned in v1.23"] : [];
}
