import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { PriorityClass } from "@coxswain/apimachinery/objects/schema/kinds/scheduling/v1";

export function defaultPriorityClass(object: KubeObject): void {
  (object as PriorityClass).preemptionPolicy ??= "PreemptLowerPriority";
}
