import type { ComponentStatus } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { tableOf } from "../../cells.ts";

export const componentStatusTable = tableOf<ComponentStatus>("componentstatuses", (component) => {
  const healthy = (component.conditions ?? []).find((condition) => condition.type === "Healthy");
  const status = healthy === undefined ? "Unknown" : healthy.status === "True" ? "Healthy" : "Unhealthy";
  return [component.metadata.name ?? "", status, healthy?.message ?? "", healthy?.error ?? ""];
});
