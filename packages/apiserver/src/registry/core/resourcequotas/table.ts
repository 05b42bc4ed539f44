import type { ResourceQuota } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { age, tableOf } from "../../cells.ts";

export const resourceQuotaTable = tableOf<ResourceQuota>("resourcequotas", (quota, ages) => {
  const requests: string[] = [];
  const limits: string[] = [];
  for (const name of Object.keys(quota.status?.hard ?? {}).sort()) {
    const text = `${name}: ${quota.status?.used?.[name] ?? "0"}/${quota.status?.hard?.[name]}`;
    (name.startsWith("limits.") ? limits : requests).push(text);
  }
  return [quota.metadata.name ?? "", age(quota, ages), requests.join(", "), limits.join(", ")];
});
