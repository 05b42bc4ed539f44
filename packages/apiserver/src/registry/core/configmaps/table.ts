import type { ConfigMap } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { age, ageColumn, nameColumn, tableOf, text } from "../../cells.ts";

export const configMapTable = tableOf<ConfigMap>(
  [nameColumn, text("Data", "Data contains the configuration data."), ageColumn],
  (map, ages) => [
    map.metadata.name ?? "",
    Object.keys(map.data ?? {}).length + Object.keys(map.binaryData ?? {}).length,
    age(map, ages),
  ],
);
