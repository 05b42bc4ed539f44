import type { Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import { age, tableOf } from "../cells.ts";

export const webhookConfigurationTable = tableOf<Unstructured>("admissionregistration", (object, ages) => [
  object.metadata.name ?? "",
  Array.isArray(object.webhooks) ? object.webhooks.length : 0,
  age(object, ages),
]);
