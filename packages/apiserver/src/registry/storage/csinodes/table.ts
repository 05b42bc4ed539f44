import type { CSINode } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import { age, ageColumn, integer, nameColumn, tableOf } from "../../cells.ts";

export const csiNodeTable = tableOf<CSINode>(
  [nameColumn, integer("Drivers", "Drivers indicates the number of CSI drivers registered on the node"), ageColumn],
  (node, ages) => [node.metadata.name ?? "", node.spec?.drivers?.length ?? 0, age(node, ages)],
);
