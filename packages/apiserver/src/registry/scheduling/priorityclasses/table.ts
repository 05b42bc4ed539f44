import type { PriorityClass } from "@coxswain/apimachinery/objects/schema/kinds/scheduling/v1";
import { age, tableOf } from "../../cells.ts";

export const priorityClassTable = tableOf<PriorityClass>("priorityclasses", (priorityClass, ages) => {
  return [
    priorityClass.metadata.name ?? "",
    priorityClass.value ?? 0,
    priorityClass.globalDefault ?? false,
    age(priorityClass, ages),
  ];
});
