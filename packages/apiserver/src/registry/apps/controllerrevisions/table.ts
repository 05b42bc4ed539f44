import { controllerOf } from "@coxswain/apimachinery/objects/meta/owner-references";
import type { ControllerRevision } from "@coxswain/apimachinery/objects/schema/kinds/apps/v1";
import { age, tableOf } from "../../cells.ts";

export const controllerRevisionTable = tableOf<ControllerRevision>("controllerrevisions", (revision, ages) => {
  const owner = controllerOf(revision);
  const group = owner?.apiVersion.includes("/") ? `.${owner.apiVersion.split("/")[0]}` : "";
  const controller = owner ? `${owner.kind.toLowerCase()}${group}/${owner.name}` : "<none>";
  return [revision.metadata.name ?? "", controller, revision.revision ?? 0, age(revision, ages)];
});
