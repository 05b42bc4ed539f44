import type { PodDisruptionBudget } from "@coxswain/apimachinery/objects/schema/kinds/policy/v1";
import { age, ageColumn, integer, nameColumn, tableOf, text } from "../../cells.ts";

export const podDisruptionBudgetTable = tableOf<PodDisruptionBudget>(
  [
    nameColumn,
    text("Min Available", "The minimum number of pods that must be available."),
    text("Max Unavailable", "The maximum number of pods that may be unavailable."),
    integer("Allowed Disruptions", "Calculated number of pods that may be disrupted at this time."),
    ageColumn,
  ],
  (budget, ages) => [
    budget.metadata.name ?? "",
    String(budget.spec?.minAvailable ?? "N/A"),
    String(budget.spec?.maxUnavailable ?? "N/A"),
    budget.status?.disruptionsAllowed ?? 0,
    age(budget, ages),
  ],
);
