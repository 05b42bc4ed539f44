import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { LimitRange, ResourceList } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";

/** Derives default and defaultRequest of containers. Source: pkg/apis/core/v1/defaults.go SetDefaults_LimitRangeItem */
export function defaultLimitRange(object: KubeObject): void {
  for (const item of (object as LimitRange).spec?.limits ?? []) {
    if (item.type !== "Container") continue;
    item.default = withMissing(item.default, item.max);
    item.defaultRequest = withMissing(withMissing(item.defaultRequest, item.default), item.min);
  }
}

function withMissing(list: ResourceList | undefined, from: ResourceList | undefined): ResourceList {
  const missing = Object.entries(from ?? {}).filter(([name]) => !Object.hasOwn(list ?? {}, name));
  return Object.fromEntries([...Object.entries(list ?? {}), ...missing]);
}
