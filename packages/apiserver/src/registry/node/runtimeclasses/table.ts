import type { Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import type { RuntimeClass } from "@coxswain/apimachinery/objects/schema/kinds/node/v1";
import { age, ageColumn, nameColumn, text } from "../../cells.ts";
import type { Ages, TableColumns } from "../../generic/strategy.ts";

export const runtimeClassTable: TableColumns = {
  columns: [
    nameColumn,
    text(
      "Handler",
      "Handler specifies the underlying runtime and configuration that the CRI implementation will use to handle pods of this class.",
    ),
    ageColumn,
  ],
  cells: (object: Unstructured, ages: Ages) => [
    object.metadata.name ?? "",
    (object as unknown as RuntimeClass).handler ?? "",
    age(object, ages),
  ],
};
