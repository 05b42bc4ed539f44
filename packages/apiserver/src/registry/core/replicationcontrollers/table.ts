import type { ReplicationController } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { age, containerCells, labelsText, tableOf } from "../../cells.ts";

export const replicationControllerTable = tableOf<ReplicationController>("replicationcontrollers", (controller, ages) => [
  controller.metadata.name ?? "",
  controller.spec?.replicas ?? 0,
  controller.status?.replicas ?? 0,
  controller.status?.readyReplicas ?? 0,
  age(controller, ages),
  ...containerCells(controller.spec?.template?.spec?.containers),
  labelsText(controller.spec?.selector),
]);
