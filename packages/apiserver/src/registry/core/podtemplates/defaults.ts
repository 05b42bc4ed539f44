import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { PodTemplate } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { defaultTemplateOf } from "../pods/defaults.ts";

export function defaultPodTemplateObject(object: KubeObject): void {
  defaultTemplateOf(object as PodTemplate);
}
