import type { Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import type { PriorityClass } from "@coxswain/apimachinery/objects/schema/kinds/scheduling/v1";
import { age, ageColumn, flag, integer, nameColumn } from "../../cells.ts";
import type { Ages, TableColumns } from "../../generic/strategy.ts";

export const priorityClassTable: TableColumns = {
  columns: [
    nameColumn,
    integer(
      "Value",
      "The value of this priority class. This is the actual priority that pods receive when they have the name of this class in their pod spec.",
    ),
    flag(
      "Global-Default",
      "globalDefault specifies whether this PriorityClass should be considered as the default priority for pods that do not have any priority class.",
    ),
    ageColumn,
  ],
  cells(object: Unstructured, ages: Ages) {
    const priorityClass = object as unknown as PriorityClass;
    return [object.metadata.name ?? "", priorityClass.value ?? 0, priorityClass.globalDefault ?? false, age(object, ages)];
  },
};
