import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Strategy } from "../../generic/strategy.ts";
import { keep } from "../../strategies.ts";
import { validateNode, validateNodeUpdate } from "./validation.ts";

/** Source: pkg/registry/core/node/strategy.go */
export const nodeStrategy: Strategy<Node> = {
  namespaceScoped: false,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: true,
  resetFields: ["status"],
  prepareForUpdate: (next, current) => keep(next, current, "status"),
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
  prepareForUpdate: (next, current) => keep(next, current, "spec"),
  // Without a current node, which no request leads to, nothing has changed.
  validateInSteps: (next, current) => validateNodeUpdate(next, current ?? next),
};

function configSourceWarnings({ spec }: Node): string[] {
  return spec?.configSource ? ["spec.configSource: deprecated in v1.22, support removal is planned in v1.23"] : [];
}
