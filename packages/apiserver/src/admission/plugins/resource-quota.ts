/**
 * Enforces ResourceQuotas: usage is charged to the quota's status before the write, so that concurrent writes cannot exceed
 * the limit. The quota controller later corrects usage charged for writes that failed.
 * Source: k8s.io/apiserver pkg/admission/plugin/resourcequota/{admission,controller}.go
 */
import { plainError } from "@coxswain/apimachinery/objects/errors/status-error";
import { resourceQuotas } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { quotaEvaluator } from "@coxswain/apimachinery/quota/usage";
import { refuse } from "../errors.ts";
import type { AdmissionAttributes, AdmissionPlugin } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";
import { type LimitedResource, uncoveredNames, uncoveredScopes } from "./limited-resources.ts";
import { namespacedLookup } from "./lookups.ts";
import { Charges } from "./quota-charges.ts";
import type { QuotaObject } from "./quota-cost.ts";

export function resourceQuota(ctx: PluginContext): AdmissionPlugin {
  const lookup = namespacedLookup<QuotaObject>(ctx.informers, ctx.client, resourceQuotas);
  const charges = new Charges(ctx);
  const { limitedResources = [] }: { limitedResources?: LimitedResource[] } = ctx.configurationOf("ResourceQuota") ?? {};
  const limitedOf = ({ resource }: AdmissionAttributes): LimitedResource[] =>
    limitedResources.filter((limited) => (limited.apiGroup ?? "") === resource.group && limited.resource === resource.resource);

  return {
    name: "ResourceQuota",
    handles: (operation) => operation === "CREATE" || operation === "UPDATE",
    ready: () => lookup.synced,
    async validate(attributes) {
      const { namespace, subresource, kind, operation, resource } = attributes;
      const isNamespace = kind.group === "" && kind.kind === "Namespace";
      if (subresource !== "" || namespace === "" || isNamespace) return;
      const limited = limitedOf(attributes);
      const quotas = await lookup.in(namespace);
      if (quotas.length === 0 && limited.length === 0) return;
      const evaluator = quotaEvaluator(resource, ctx.clock, ctx.featureEnabled);
      if (operation === "UPDATE" && !evaluator.chargesUpdates) return;
      const object = attributes.object!;
      const names = uncoveredNames(limited, evaluator, object, quotas);
      if (names.length > 0) throw refuse(attributes, `insufficient quota to consume: ${names.join(",")}`);
      const scopes = uncoveredScopes(limited, object, quotas);
      if (scopes.length > 0) throw plainError(`insufficient quota to match these scopes: [${scopes.join(" ")}]`);
      if (quotas.length > 0) await charges.charge(attributes, evaluator, quotas);
    },
  };
}
