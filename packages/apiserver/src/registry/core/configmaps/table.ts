import type { ConfigMap } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { age, tableOf } from "../../cells.ts";

export const configMapTable = tableOf<ConfigMap>("configmaps", (map, ages) => [
  map.metadata.name ?? "",
  Object.keys(map.data ?? {}).length + Object.keys(map.binaryData ?? {}).length,
  age(map, ages),
]);
