import type { Deployment } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { age, ageColumn, containerCells, nameColumn, selectorText, tableOf, text, wide } from "../../cells.ts";

export const deploymentTable = tableOf<Deployment>(
  [
    nameColumn,
    text("Ready", "Number of the pod with ready state"),
    text("Up-to-date", "Total number of non-terminated pods targeted by this deployment that have the desired template spec."),
    text("Available", "Total number of available pods (ready for at least minReadySeconds) targeted by this deployment."),
    ageColumn,
    wide("Containers", "Names of each container in the template."),
    wide("Images", "Images referenced by each container in the template."),
    wide(
      "Selector",
      "Label selector for pods. Existing ReplicaSets whose pods are selected by this will be the ones affected by this deployment. It must match the pod template's labels.",
    ),
  ],
  (deployment, ages) => [
    deployment.metadata.name ?? "",
    `${deployment.status?.readyReplicas ?? 0}/${deployment.spec?.replicas ?? 0}`,
    deployment.status?.updatedReplicas ?? 0,
    deployment.status?.availableReplicas ?? 0,
    age(deployment, ages),
    ...containerCells(deployment.spec?.template?.spec?.containers),
    selectorText(deployment.spec?.selector),
  ],
);
