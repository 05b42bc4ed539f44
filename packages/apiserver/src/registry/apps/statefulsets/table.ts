import type { StatefulSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { age, containerCells, tableOf } from "../../cells.ts";

export const statefulSetTable = tableOf<StatefulSet>("statefulsets", (statefulSet, ages) => [
  statefulSet.metadata.name ?? "",
  `${statefulSet.status?.readyReplicas ?? 0}/${statefulSet.spec?.replicas ?? 0}`,
  age(statefulSet, ages),
  ...containerCells(statefulSet.spec?.template?.spec?.containers),
]);
