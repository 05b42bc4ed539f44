import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { ResourceQuota } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { roundUpToMilli } from "../pods/defaults.ts";

export function defaultResourceQuota(object: KubeObject): void {
  const quota = object as ResourceQuota;
  for (const list of [quota.spec?.hard, quota.status?.hard, quota.status?.used]) if (list) roundUpToMilli(list);
}
