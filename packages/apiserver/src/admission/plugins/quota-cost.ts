/**
 * The usage that a write adds to matching quotas, and the check against their hard limits.
 * Source: pkg/admission/plugin/resourcequota/controller.go CheckRequest
 */
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { ResourceQuotaSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import {
  addResources,
  exceededIn,
  formatResources,
  maskResources,
  negativeIn,
  type ResourceList,
  subtractNonNegative,
  withoutZeros,
} from "@coxswain/apimachinery/quota/resource-list";
import type { QuotaEvaluator } from "@coxswain/apimachinery/quota/usage";
import { refuse } from "../errors.ts";
import type { AdmissionAttributes } from "../plugin.ts";

export interface QuotaObject extends KubeObject {
  spec?: ResourceQuotaSpec;
  status?: { hard?: ResourceList; used?: ResourceList };
}

type QuotaAttributes = Pick<AdmissionAttributes, "operation" | "object" | "oldObject" | "resource" | "name">;

/**
 * Pure: computes the quotas with this write charged; empty when the write changes no usage.
 * @throws StatusError 403 when a quota is exceeded.
 */
export function chargedQuotas(
  attributes: QuotaAttributes,
  evaluator: QuotaEvaluator,
  quotas: readonly QuotaObject[],
): QuotaObject[] {
  const object = attributes.object!;
  const concerned = quotas.filter(({ spec, status }) => {
    return evaluator.matching(Object.keys(status?.hard ?? {})).length > 0 && evaluator.inScope(spec, object);
  });
  for (const quota of concerned) checkUsable(attributes, evaluator, quota, object);
  if (concerned.length === 0) return [];

  const own = evaluator.usage(object);
  const negative = negativeIn(own);
  if (negative.length > 0) throw refuse(attributes, `quota usage is negative for resource(s): ${negative.sort().join(",")}`);
  const isUpdate = attributes.operation === "UPDATE" && attributes.oldObject !== undefined;
  const cost = withoutZeros(isUpdate ? subtractNonNegative(own, evaluator.usage(attributes.oldObject)) : own);
  if (Object.keys(cost).length === 0) return [];

  return concerned.flatMap((quota) => {
    const { hard = {}, used = {} } = quota.status ?? {};
    const requested = maskResources(cost, Object.keys(hard));
    if (Object.keys(requested).length === 0) return [];
    const next = addResources(used, requested);
    const exceeded = exceededIn(maskResources(next, Object.keys(requested)), hard);
    if (exceeded.length > 0) {
      const shown = (list: ResourceList): string => formatResources(maskResources(list, exceeded));
      throw refuse(
        attributes,
        `exceeded quota: ${quota.metadata.name}, requested: ${shown(requested)}, used: ${shown(used)}, limited: ${shown(hard)}`,
      );
    }
    return [{ ...quota, status: { ...quota.status, used: next } }];
  });
}

function checkUsable(attributes: QuotaAttributes, evaluator: QuotaEvaluator, quota: QuotaObject, object: KubeObject): void {
  const { hard = {}, used = {} } = quota.status ?? {};
  const restricted = evaluator.matching(Object.keys(hard));
  const missing = evaluator.missing(restricted, object);
  if (missing !== "") throw refuse(attributes, `failed quota: ${quota.metadata.name}: ${missing}`);
  if (restricted.some((name) => !Object.hasOwn(used, name))) {
    throw refuse(attributes, `status unknown for quota: ${quota.metadata.name}, resources: ${restricted.sort().join(",")}`);
  }
}
