import type { CSINode } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import { age, tableOf } from "../../cells.ts";

export const csiNodeTable = tableOf<CSINode>("csinodes", (node, ages) => [
  node.metadata.name ?? "",
  node.spec?.drivers?.length ?? 0,
  age(node, ages),
]);
