import type { RuntimeClass } from "@coxswain/apimachinery/objects/schema/kinds/node/v1";
import { age, tableOf } from "../../cells.ts";

export const runtimeClassTable = tableOf<RuntimeClass>("runtimeclasses", (runtimeClass, ages) => [
  runtimeClass.metadata.name ?? "",
  runtimeClass.handler ?? "",
  age(runtimeClass, ages),
]);
