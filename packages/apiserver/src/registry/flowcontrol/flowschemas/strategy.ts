import type { FlowSchema } from "@coxswain/apimachinery/objects/schema/kinds/flowcontrol/v1beta2";
import type { Strategy } from "../../generic/strategy.ts";
import { statusStrategyOf, strategyOf } from "../../strategies.ts";
import { validateTypedConditions } from "../conditions.ts";
import { mandatorySchemaProblems } from "../mandatory.ts";
import { validateFlowSchema } from "./validation.ts";

/** Source: pkg/registry/flowcontrol/flowschema/strategy.go */
export const flowSchemaStrategy: Strategy<FlowSchema> = strategyOf<FlowSchema>({
  namespaced: false,
  status: true,
  generation: true,
  allowUnconditionalUpdate: true,
  validate: (next) => [...validateFlowSchema(next), ...mandatorySchemaProblems(next)],
});

export const flowSchemaStatusStrategy: Strategy<FlowSchema> = statusStrategyOf({
  namespaced: false,
  keepMetadata: true,
  validateUpdate: (next) => validateTypedConditions(next.status?.conditions),
});
