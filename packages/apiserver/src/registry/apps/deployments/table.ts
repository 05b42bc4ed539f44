import type { Deployment } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { age, containerCells, selectorText, tableOf } from "../../cells.ts";

export const deploymentTable = tableOf<Deployment>("deployments", (deployment, ages) => [
  deployment.metadata.name ?? "",
  `${deployment.status?.readyReplicas ?? 0}/${deployment.spec?.replicas ?? 0}`,
  deployment.status?.updatedReplicas ?? 0,
  deployment.status?.availableReplicas ?? 0,
  age(deployment, ages),
  ...containerCells(deployment.spec?.template?.spec?.containers),
  selectorText(deployment.spec?.selector),
]);
