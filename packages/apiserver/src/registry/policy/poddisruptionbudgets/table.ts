import type { PodDisruptionBudget } from "@coxswain/apimachinery/objects/schema/kinds/policy/v1";
import { age, tableOf } from "../../cells.ts";

export const podDisruptionBudgetTable = tableOf<PodDisruptionBudget>("poddisruptionbudgets", (budget, ages) => [
  budget.metadata.name ?? "",
  String(budget.spec?.minAvailable ?? "N/A"),
  String(budget.spec?.maxUnavailable ?? "N/A"),
  budget.status?.disruptionsAllowed ?? 0,
  age(budget, ages),
]);
