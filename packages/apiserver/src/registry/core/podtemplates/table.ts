import type { PodTemplate } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { containerCells, labelsText, nameColumn, tableOf, text } from "../../cells.ts";

export const podTemplateTable = tableOf<PodTemplate>(
  [
    nameColumn,
    text("Containers", "Names of each container in the template."),
    text("Images", "Images referenced by each container in the template."),
    text("Pod Labels", "The labels for the pod template."),
  ],
  (template) => [
    template.metadata.name ?? "",
    ...containerCells(template.template?.spec?.containers),
    labelsText(template.template?.metadata?.labels),
  ],
);
