import { randomUUID } from "node:crypto";
import type { LimitRange } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Strategy } from "../../generic/strategy.ts";
import { validateLimitRange } from "./validation.ts";

/** Source: pkg/registry/core/limitrange/strategy.go */
export const limitRangeStrategy: Strategy<LimitRange> = {
  namespaceScoped: true,
  allowCreateOnUpdate: true,
  allowUnconditionalUpdate: true,
  prepareForCreate(next) {
    if (!next.metadata.name) next.metadata.name = randomUUID();
  },
  validateInSteps: (next) => validateLimitRange(next),
};
