import type { PodTemplate } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { defaultTemplateOf } from "../pods/defaults.ts";

export function defaultPodTemplateObject(object: PodTemplate): void {
  defaultTemplateOf(object);
}
