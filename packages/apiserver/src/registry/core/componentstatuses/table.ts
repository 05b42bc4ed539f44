import type { ComponentStatus } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { nameColumn, tableOf, text } from "../../cells.ts";

export const componentStatusTable = tableOf<ComponentStatus>(
  [
    nameColumn,
    text("Status", "Status of the component conditions"),
    text("Message", "Message of the component conditions"),
    text("Error", "Error of the component conditions"),
  ],
  (component) => {
    const healthy = (component.conditions ?? []).find((condition) => condition.type === "Healthy");
    const status = healthy === undefined ? "Unknown" : healthy.status === "True" ? "Healthy" : "Unhealthy";
    return [component.metadata.name ?? "", status, healthy?.message ?? "", healthy?.error ?? ""];
  },
);
