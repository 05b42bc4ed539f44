import type { ReplicaSet } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { age, ageColumn, containerCells, integer, nameColumn, selectorText, tableOf, wide } from "../../cells.ts";

export const replicaSetTable = tableOf<ReplicaSet>(
  [
    nameColumn,
    integer(
      "Desired",
      "Replicas is the number of desired replicas. This is a pointer to distinguish between explicit zero and unspecified. Defaults to 1. More info: https://kubernetes.io/docs/concepts/workloads/controllers/replicationcontroller/#what-is-a-replicationcontroller",
    ),
    integer(
      "Current",
      "Replicas is the most recently oberved number of replicas. More info: https://kubernetes.io/docs/concepts/workloads/controllers/replicationcontroller/#what-is-a-replicationcontroller",
    ),
    integer("Ready", "readyReplicas is the number of pods targeted by this ReplicaSet with a Ready Condition."),
    ageColumn,
    wide("Containers", "Names of each container in the template."),
    wide("Images", "Images referenced by each container in the template."),
    wide(
      "Selector",
      "Selector is a label query over pods that should match the replica count. Label keys and values that must match in order to be controlled by this replica set. It must match the pod template's labels. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors",
    ),
  ],
  (replicaSet, ages) => [
    replicaSet.metadata.name ?? "",
    replicaSet.spec?.replicas ?? 0,
    replicaSet.status?.replicas ?? 0,
    replicaSet.status?.readyReplicas ?? 0,
    age(replicaSet, ages),
    ...containerCells(replicaSet.spec?.template?.spec?.containers),
    selectorText(replicaSet.spec?.selector),
  ],
);
