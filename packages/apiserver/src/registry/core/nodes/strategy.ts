import type { Node } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { Strategy } from "../../generic/strategy.ts";
import { keep } from "../../strategies.ts";
import { validateNode, validateNodeUpdate } from "./validation.ts";

/** Source: pkg/registry/core/node/strategy.go */
export const nodeStrategy: Strategy<Node> = {
  namespaceScoped: false,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: true,
  resetFields: ["status"],
  prepareForCreate(next, ctx) {
    dropConfigSource(next, undefined, ctx.featureEnabled);
  },
  prepareForUpdate(next, current, ctx) {
    keep(next, current, "status");
    dropConfigSource(next, current, ctx.featureEnabled);
  },
  validate: (next) => validateNode(next),
  validateUpdate: (next, current) => validateNodeUpdate(next, current),
};

export const nodeStatusStrategy: Strategy<Node> = {
  namespaceScoped: false,
  allowCreateOnUpdate: false,
  allowUnconditionalUpdate: true,
  resetFields: ["spec"],
  prepareForUpdate: (next, current) => keep(next, current, "spec"),
  validateUpdate: (next, current) => validateNodeUpdate(next, current),
};

function dropConfigSource(next: Node, current: Node | undefined, featureEnabled: (gate: string) => boolean): void {
  if (!featureEnabled("DynamicKubeletConfig") && current?.spec?.configSource === undefined) delete next.spec?.configSource;
}
