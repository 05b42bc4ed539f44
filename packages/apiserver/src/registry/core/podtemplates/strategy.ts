import { semanticEqualInSteps } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { PodTemplate } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { Strategy } from "../../generic/strategy.ts";
import { strategyOf } from "../../strategies.ts";
import { podValidationOptions } from "../pods/validation/options.ts";
import { validatePodTemplate } from "../pods/validation/pod-template.ts";

/** Source: pkg/registry/core/podtemplate/strategy.go */
export const podTemplateStrategy: Strategy<PodTemplate> = strategyOf<PodTemplate>({
  namespaced: true,
  template: { path: "template", of: ({ template }) => template },
  prepareForCreate(next) {
    next.metadata.generation = 1;
  },
  *prepareForUpdate(next, current) {
    const generation = current.metadata.generation ?? 0;
    next.metadata.generation = (yield* semanticEqualInSteps(next.template, current.template)) ? generation : generation + 1;
  },
  validateInSteps: (next, current, ctx) =>
    validatePodTemplate(next.template, "template", podValidationOptions(ctx.featureEnabled, current?.template)),
});
