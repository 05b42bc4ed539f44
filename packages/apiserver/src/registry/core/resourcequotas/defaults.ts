import type { ResourceQuota } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { atOnce, type Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { roundUpToMilliInSteps } from "../pods/defaults.ts";

export function defaultResourceQuota(quota: ResourceQuota): void {
  atOnce(defaultResourceQuotaInSteps(quota));
}

/** As `defaultResourceQuota`, for quotas of many resources. */
export function* defaultResourceQuotaInSteps(quota: ResourceQuota): Steps<void> {
  for (const list of [quota.spec?.hard, quota.status?.hard, quota.status?.used]) if (list) yield* roundUpToMilliInSteps(list);
}
