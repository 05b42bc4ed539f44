import type { PriorityClass } from "@coxswain/apimachinery/objects/schema/kinds/scheduling/v1";

export function defaultPriorityClass(object: PriorityClass): void {
  object.preemptionPolicy ??= "PreemptLowerPriority";
}
