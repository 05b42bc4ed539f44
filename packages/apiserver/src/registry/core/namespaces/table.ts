import type { Namespace } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { age, tableOf } from "../../cells.ts";

export const namespaceTable = tableOf<Namespace>("namespaces", (namespace, ages) => [
  namespace.metadata.name ?? "",
  namespace.status?.phase ?? "",
  age(namespace, ages),
]);
