import type { Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import { age, ageColumn, integer, nameColumn } from "../cells.ts";
import type { Ages, TableColumns } from "../generic/strategy.ts";

export const webhookConfigurationTable: TableColumns = {
  columns: [
    nameColumn,
    integer("Webhooks", "Webhooks indicates the number of webhooks registered in this configuration."),
    ageColumn,
  ],
  cells: (object: Unstructured, ages: Ages) => [
    object.metadata.name ?? "",
    Array.isArray(object.webhooks) ? object.webhooks.length : 0,
    age(object, ages),
  ],
};
