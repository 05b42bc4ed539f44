import type { Secret } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { age, tableOf } from "../../cells.ts";

export const secretTable = tableOf<Secret>("secrets", (secret, ages) => [
  secret.metadata.name ?? "",
  secret.type ?? "",
  Object.keys(secret.data ?? {}).length,
  age(secret, ages),
]);
