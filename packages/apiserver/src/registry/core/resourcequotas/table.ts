import type { ResourceQuota } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { age, ageColumn, nameColumn, tableOf, text } from "../../cells.ts";

export const resourceQuotaTable = tableOf<ResourceQuota>(
  [
    nameColumn,
    ageColumn,
    text("Request", "Request represents a minimum amount of cpu/memory that a container may consume."),
    text(
      "Limit",
      "Limits control the maximum amount of cpu/memory that a container may use independent of contention on the node.",
    ),
  ],
  (quota, ages) => {
    const requests: string[] = [];
    const limits: string[] = [];
    for (const name of Object.keys(quota.status?.hard ?? {}).sort()) {
      const text = `${name}: ${quota.status?.used?.[name] ?? "0"}/${quota.status?.hard?.[name]}`;
      (name.includes("limits") ? limits : requests).push(text);
    }
    return [quota.metadata.name ?? "", age(quota, ages), requests.join(", "), limits.join(", ")];
  },
);
