/**
 * Keeps a namespace within its quotas: what a write takes is charged to the quota's status before the write is done, so
 * that many at once cannot take more than there is. The controller corrects what was charged in vain.
 * Source: k8s.io/apiserver pkg/admission/plugin/resourcequota/{admission,controller}.go
 */
import { isConflict } from "@coxswain/apimachinery/errors/predicates";
import { internalError } from "@coxswain/apimachinery/errors/status-error";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
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
import { type QuotaEvaluator, quotaEvaluator } from "@coxswain/apimachinery/quota/usage";
import type { ResourceQuotaSpec } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { resourceQuotas } from "@coxswain/apimachinery/schema/kinds/resources";
import type { PluginContext } from "../catalogue.ts";
import { refuse } from "../errors.ts";
import type { AdmissionAttributes, AdmissionPlugin } from "../plugin.ts";
import { type LimitedResource, uncovered } from "./limited-resources.ts";

export interface QuotaObject extends KubeObject {
  spec?: ResourceQuotaSpec;
  status?: { hard?: ResourceList; used?: ResourceList };
}

/** Other writers of the same namespace may get there first. */
const attempts = 10;

export function resourceQuota(ctx: PluginContext): AdmissionPlugin {
  const informer = ctx.informers.for<QuotaObject>(resourceQuotas);
  // One at a time in a namespace: charging is a read, a sum and a write.
  const turns = new Map<string, Promise<void>>();

  const { limitedResources = [] } = (ctx.configurationOf("ResourceQuota") ?? {}) as { limitedResources?: LimitedResource[] };
  const limitedOf = ({ resource }: AdmissionAttributes): LimitedResource[] =>
    limitedResources.filter((limited) => (limited.apiGroup ?? "") === resource.group && limited.resource === resource.resource);

  const charge = async (attributes: AdmissionAttributes, evaluator: QuotaEvaluator): Promise<void> => {
    for (let attempt = 0; attempt < attempts; attempt++) {
      const quotas = await quotasOf(ctx, informer.lister.inNamespace(attributes.namespace), attempt > 0);
      const charged = chargedQuotas(attributes, evaluator, quotas);
      if (charged.length === 0 || attributes.dryRun) return;
      try {
        for (const quota of charged) {
          const { signal } = attributes;
          known.set(uidOf(quota), await ctx.client.update<QuotaObject>(resourceQuotas, quota, { subresource: "status", signal }));
        }
        return;
      } catch (err) {
        if (!isConflict(err)) throw err;
        for (const quota of charged) known.delete(uidOf(quota));
      }
    }
    throw internalError(new Error("resource quota evaluation timed out"));
  };

  /** What we wrote ourselves and the informer may not show yet. */
  const known = new Map<string, QuotaObject>();
  informer.addHandler({
    updated: (_old, now) => forgetOlder(known, now),
    deleted: (last) => known.delete(uidOf(last)),
  });

  async function quotasOf({ client }: PluginContext, cached: readonly QuotaObject[], fresh: boolean): Promise<QuotaObject[]> {
    if (!fresh) return cached.map((quota) => newer(quota, known.get(uidOf(quota))));
    const live = cached.map(({ metadata }) =>
      client.get<QuotaObject>(resourceQuotas, { namespace: metadata.namespace, name: metadata.name as string }),
    );
    return (await Promise.allSettled(live)).flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  }

  return {
    name: "ResourceQuota",
    handles: (operation) => operation === "CREATE" || operation === "UPDATE",
    ready: () => informer.synced,
    async validate(attributes) {
      const { namespace, subresource, resource, operation } = attributes;
      if (subresource !== "" || namespace === "" || resource.resource === "namespaces") return;
      const quotas = informer.lister.inNamespace(namespace);
      const limited = limitedOf(attributes);
      if (quotas.length === 0 && limited.length === 0) return;
      const evaluator = quotaEvaluator(resource, ctx.clock);
      if (operation === "UPDATE" && !evaluator.chargesUpdates) return;
      const reason = uncovered(limited, evaluator, attributes.object as KubeObject, quotas);
      if (reason !== undefined) throw refuse(attributes, reason);
      if (quotas.length === 0) return;
      const before = turns.get(namespace) ?? Promise.resolve();
      const mine = before.then(() => charge(attributes, evaluator));
      const done = mine.catch(() => {});
      turns.set(namespace, done);
      try {
        await mine;
      } finally {
        if (turns.get(namespace) === done) turns.delete(namespace);
      }
    },
  };
}

function uidOf({ metadata }: QuotaObject): string {
  return metadata.uid ?? "";
}

function revisionOf({ metadata }: QuotaObject): number {
  return Number(metadata.resourceVersion ?? 0);
}

function newer(cached: QuotaObject, own: QuotaObject | undefined): QuotaObject {
  return own !== undefined && revisionOf(own) > revisionOf(cached) ? own : cached;
}

function forgetOlder(known: Map<string, QuotaObject>, seen: QuotaObject): void {
  const own = known.get(uidOf(seen));
  if (own !== undefined && revisionOf(own) <= revisionOf(seen)) known.delete(uidOf(seen));
}

/**
 * Pure: the quotas with this write charged; none when it costs nothing.
 * @throws StatusError 403 when one does not allow it.
 */
export function chargedQuotas(
  attributes: Pick<AdmissionAttributes, "operation" | "object" | "oldObject" | "resource" | "name">,
  evaluator: QuotaEvaluator,
  quotas: readonly QuotaObject[],
): QuotaObject[] {
  const full = attributes as AdmissionAttributes;
  const object = attributes.object as KubeObject;
  const concerned = quotas.filter(({ spec, status }) => {
    return evaluator.matching(Object.keys(status?.hard ?? {})).length > 0 && evaluator.inScope(spec, object);
  });
  for (const quota of concerned) checkUsable(full, evaluator, quota, object);
  if (concerned.length === 0) return [];

  const own = evaluator.usage(object);
  const negative = negativeIn(own);
  if (negative.length > 0) throw refuse(full, `quota usage is negative for resource(s): ${negative.sort().join(",")}`);
  const isUpdate = attributes.operation === "UPDATE" && attributes.oldObject !== undefined;
  const cost = withoutZeros(isUpdate ? subtractNonNegative(own, evaluator.usage(attributes.oldObject as KubeObject)) : own);
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
        full,
        `exceeded quota: ${quota.metadata.name}, requested: ${shown(requested)}, used: ${shown(used)}, limited: ${shown(hard)}`,
      );
    }
    return [{ ...quota, status: { ...quota.status, used: next } }];
  });
}

function checkUsable(attributes: AdmissionAttributes, evaluator: QuotaEvaluator, quota: QuotaObject, object: KubeObject): void {
  const { hard = {}, used = {} } = quota.status ?? {};
  const restricted = evaluator.matching(Object.keys(hard));
  const missing = evaluator.missing(restricted, object);
  if (missing !== "") throw refuse(attributes, `failed quota: ${quota.metadata.name}: ${missing}`);
  if (restricted.some((name) => !Object.hasOwn(used, name))) {
    throw refuse(attributes, `status unknown for quota: ${quota.metadata.name}, resources: ${restricted.sort().join(",")}`);
  }
}
