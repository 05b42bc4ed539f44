import { semanticEqual } from "@coxswain/apimachinery/meta/deep-equal";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { PodTemplateSpec } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { templateWarnings } from "../core/pods/warnings.ts";

type Templated = KubeObject & { spec?: { template?: PodTemplateSpec } };

/** Warnings about the pod template of a workload, on create and whenever it changes. */
export const templateWarningsOnChange = {
  warningsOnCreate(next: KubeObject): string[] {
    const template = (next as Templated).spec?.template;
    return template ? templateWarnings(template, undefined, "spec.template") : [];
  },
  warningsOnUpdate(next: KubeObject, current: KubeObject): string[] {
    const [template, old] = [(next as Templated).spec?.template, (current as Templated).spec?.template];
    return template && !semanticEqual(template, old) ? templateWarnings(template, old, "spec.template") : [];
  },
};
