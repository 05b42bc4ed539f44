/** Total resources of a pod. Source: pkg/api/v1/resource/helpers.go PodRequestsAndLimits */
import type { PodSpec } from "../objects/schema/kinds/core/v1.ts";
import { addResources, maxResources, quantityIn, type ResourceList } from "./resource-list.ts";

/** By resource: the sum over containers or the largest init container, whichever is greater, plus the pod overhead. */
export function podResources(pod: { spec?: PodSpec }, which: "requests" | "limits"): ResourceList {
  const { spec } = pod;
  let total: ResourceList = {};
  for (const { resources } of spec?.containers ?? []) total = addResources(total, resources?.[which] ?? {});
  for (const { resources } of spec?.initContainers ?? []) total = maxResources(total, resources?.[which] ?? {});
  const overhead = spec?.overhead ?? {};
  if (which === "requests") return addResources(total, overhead);
  const isLimited = (name: string): boolean => quantityIn(total, name)?.isZero === false;
  return addResources(total, Object.fromEntries(Object.entries(overhead).filter(([name]) => isLimited(name))));
}
