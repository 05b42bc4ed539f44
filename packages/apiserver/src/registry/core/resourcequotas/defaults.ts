import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { ResourceQuota } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { atOnce, type Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { roundUpToMilliInSteps } from "../pods/defaults.ts";

export function defaultResourceQuota(object: KubeObject): void {
  atOnce(defaultResourceQuotaInSteps(object));
}

/** As `defaultResourceQuota`, for quotas of many resources. */
export function* defaultResourceQuotaInSteps(object: KubeObject): Steps<void> {
  const quota = object as ResourceQuota;
  for (const list of [quota.spec?.hard, quota.status?.hard, quota.status?.used]) if (list) yield* roundUpToMilliInSteps(list);
}
