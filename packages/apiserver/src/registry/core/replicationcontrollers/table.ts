import type { ReplicationController } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { age, ageColumn, containerCells, integer, labelsText, nameColumn, tableOf, wide } from "../../cells.ts";

export const replicationControllerTable = tableOf<ReplicationController>(
  [
    nameColumn,
    integer(
      "Desired",
      "Replicas is the number of desired replicas. This is a pointer to distinguish between explicit zero and unspecified. Defaults to 1. More info: https://kubernetes.io/docs/concepts/workloads/controllers/replicationcontroller#what-is-a-replicationcontroller",
    ),
    integer(
      "Current",
      "Replicas is the most recently observed number of replicas. More info: https://kubernetes.io/docs/concepts/workloads/controllers/replicationcontroller#what-is-a-replicationcontroller",
    ),
    integer("Ready", "The number of ready replicas for this replication controller."),
    ageColumn,
    wide("Containers", "Names of each container in the template."),
    wide("Images", "Images referenced by each container in the template."),
    wide(
      "Selector",
      "Selector is a label query over pods that should match the Replicas count. If Selector is empty, it is defaulted to the labels present on the Pod template. Label keys and values that must match in order to be controlled by this replication controller, if empty defaulted to labels on Pod template. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors",
    ),
  ],
  (controller, ages) => [
    controller.metadata.name ?? "",
    controller.spec?.replicas ?? 0,
    controller.status?.replicas ?? 0,
    controller.status?.readyReplicas ?? 0,
    age(controller, ages),
    ...containerCells(controller.spec?.template?.spec?.containers),
    labelsText(controller.spec?.selector),
  ],
);
