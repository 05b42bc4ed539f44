import type { Ingress } from "@coxswain/apimachinery/objects/schema/kinds/networking/v1";
import type { Strategy } from "../../generic/strategy.ts";
import { statusStrategyOf, strategyOf } from "../../strategies.ts";
import { validateIngress, validateIngressCreate, validateIngressStatus } from "./validation.ts";

/** Source: pkg/registry/networking/ingress/strategy.go */
export const ingressStrategy: Strategy<Ingress> = {
  ...strategyOf<Ingress>({ namespaced: true, status: true, generation: true }),
  validateInSteps: (next, current) => (current === undefined ? validateIngressCreate(next) : validateIngress(next, current)),
};

export const ingressStatusStrategy: Strategy<Ingress> = statusStrategyOf({
  namespaced: true,
  validateUpdate: (next) => validateIngressStatus(next),
});
