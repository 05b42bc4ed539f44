import type { ServiceAccount } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { age, tableOf } from "../../cells.ts";

export const serviceAccountTable = tableOf<ServiceAccount>("serviceaccounts", (account, ages) => [
  account.metadata.name ?? "",
  account.secrets?.length ?? 0,
  age(account, ages),
]);
