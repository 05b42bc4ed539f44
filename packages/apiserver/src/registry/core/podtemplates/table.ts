import type { PodTemplate } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { containerCells, labelsText, tableOf } from "../../cells.ts";

export const podTemplateTable = tableOf<PodTemplate>("podtemplates", (template) => [
  template.metadata.name ?? "",
  ...containerCells(template.template?.spec?.containers),
  labelsText(template.template?.metadata?.labels),
]);
