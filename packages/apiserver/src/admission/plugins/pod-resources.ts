/** What a pod asks for as a whole. Source: pkg/api/v1/resource/helpers.go PodRequestsAndLimits */
import { Quantity } from "@coxswain/apimachinery/meta/quantity";
import type { PodSpec } from "@coxswain/apimachinery/schema/kinds/core/v1";

export type ResourceList = Record<string, string>;

/** The sum of the containers, or one init container where that is more, plus the overhead. */
export function podResources(pod: { spec?: PodSpec }, which: "requests" | "limits"): ResourceList {
  const { spec } = pod;
  let total: ResourceList = {};
  for (const { resources } of spec?.containers ?? []) total = addResources(total, resources?.[which] ?? {});
  for (const { resources } of spec?.initContainers ?? []) total = maxResources(total, resources?.[which] ?? {});
  if (spec?.overhead === undefined) return total;
  if (which === "requests") return addResources(total, spec.overhead);
  const limited = Object.fromEntries(Object.entries(spec.overhead).filter(([name]) => Object.hasOwn(total, name)));
  return addResources(total, limited);
}

export function addResources(a: ResourceList, b: ResourceList): ResourceList {
  return combine(a, b, (left, right) => left.add(right));
}

/** Missing ones count as zero. */
export function subtractResources(a: ResourceList, b: ResourceList): ResourceList {
  const zero = Quantity.parse("0");
  const result: ResourceList = { ...a };
  for (const [name, text] of Object.entries(b)) {
    const left = Object.hasOwn(a, name) ? Quantity.parse(a[name] as string) : zero;
    result[name] = left.sub(Quantity.parse(text)).toString();
  }
  return result;
}

function maxResources(a: ResourceList, b: ResourceList): ResourceList {
  return combine(a, b, (left, right) => (left.cmp(right) < 0 ? right : left));
}

function combine(a: ResourceList, b: ResourceList, join: (left: Quantity, right: Quantity) => Quantity): ResourceList {
  const result: ResourceList = { ...a };
  for (const [name, text] of Object.entries(b)) {
    const right = Quantity.tryParse(String(text));
    if (right === undefined) continue;
    const left = Object.hasOwn(a, name) ? Quantity.tryParse(String(a[name])) : undefined;
    result[name] = (left === undefined ? right : join(left, right)).toString();
  }
  return result;
}
