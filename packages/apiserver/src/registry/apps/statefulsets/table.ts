import type { StatefulSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { age, ageColumn, containerCells, nameColumn, tableOf, text, wide } from "../../cells.ts";

export const statefulSetTable = tableOf<StatefulSet>(
  [
    nameColumn,
    text("Ready", "Number of the pod with ready state"),
    ageColumn,
    wide("Containers", "Names of each container in the template."),
    wide("Images", "Images referenced by each container in the template."),
  ],
  (statefulSet, ages) => [
    statefulSet.metadata.name ?? "",
    `${statefulSet.status?.readyReplicas ?? 0}/${statefulSet.spec?.replicas ?? 0}`,
    age(statefulSet, ages),
    ...containerCells(statefulSet.spec?.template?.spec?.containers),
  ],
);
