import type { ServiceAccount } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { age, ageColumn, nameColumn, tableOf, text } from "../../cells.ts";

export const serviceAccountTable = tableOf<ServiceAccount>(
  [
    nameColumn,
    text(
      "Secrets",
      "Secrets is the list of secrets allowed to be used by pods running using this ServiceAccount. More info: https://kubernetes.io/docs/concepts/configuration/secret",
    ),
    ageColumn,
  ],
  (account, ages) => [account.metadata.name ?? "", account.secrets?.length ?? 0, age(account, ages)],
);
