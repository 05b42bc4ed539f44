import type { Namespace } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { age, ageColumn, nameColumn, tableOf, text } from "../../cells.ts";

export const namespaceTable = tableOf<Namespace>(
  [nameColumn, text("Status", "The status of the namespace"), ageColumn],
  (namespace, ages) => [namespace.metadata.name ?? "", namespace.status?.phase ?? "", age(namespace, ages)],
);
