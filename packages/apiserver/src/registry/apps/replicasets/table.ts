import type { ReplicaSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { age, containerCells, selectorText, tableOf } from "../../cells.ts";

export const replicaSetTable = tableOf<ReplicaSet>("replicasets", (replicaSet, ages) => [
  replicaSet.metadata.name ?? "",
  replicaSet.spec?.replicas ?? 0,
  replicaSet.status?.replicas ?? 0,
  replicaSet.status?.readyReplicas ?? 0,
  age(replicaSet, ages),
  ...containerCells(replicaSet.spec?.template?.spec?.containers),
  selectorText(replicaSet.spec?.selector),
]);
