import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { PodTemplate } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { defaultPodTemplate } from "../pods/defaults.ts";

export function defaultPodTemplateObject(object: KubeObject): void {
  defaultPodTemplate((object as PodTemplate).template);
}
