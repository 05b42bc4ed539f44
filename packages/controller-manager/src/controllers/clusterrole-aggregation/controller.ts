import { type Controller, done, type Result } from "@coxswain/apimachinery/controller/controller";
import { enqueueBy } from "@coxswain/apimachinery/controller/sources";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { ObjectKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { ClusterRole, PolicyRule } from "@coxswain/apimachinery/objects/schema/kinds/rbac/v1";
import { clusterRoles } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { LabelSelector } from "@coxswain/apimachinery/objects/selectors/label-selector";
import type { ControllerContext } from "../../controller-context.ts";
import { defineController } from "../../define-controller.ts";

/**
 * clusterrole-aggregation: computes the rules of ClusterRoles with an `aggregationRule`, such as `admin`, `edit` and `view`.
 * Watches ClusterRoles (every change enqueues all aggregated roles); writes ClusterRoles by server-side apply with force.
 * Source: pkg/controller/clusterroleaggregation/clusterroleaggregation_controller.go
 */
export function newClusterRoleAggregationController(base: ControllerContext): Controller {
  const ctx: AggregationContext = { ...base, clusterRoles: base.informers.for<ClusterRole>(clusterRoles) };
  return defineController(ctx, {
    name: "ClusterRoleAggregator",
    resource: clusterRoles,
    sources: [
      enqueueBy(ctx.clusterRoles, ({ enqueue }) => {
        const enqueueAggregated = (): void => {
          for (const { metadata, aggregationRule } of ctx.clusterRoles.lister.list())
            if (aggregationRule !== undefined) enqueue(metadata.name ?? "");
        };
        return { added: enqueueAggregated, updated: enqueueAggregated, deleted: enqueueAggregated };
      }),
    ],
    reconcile,
  });
}

const fieldManager = "clusterrole-aggregation-controller";

interface AggregationContext extends ControllerContext {
  readonly clusterRoles: SharedInformer<ClusterRole>;
}

async function reconcile(ctx: AggregationContext, name: ObjectKey, signal: AbortSignal): Promise<Result> {
  const { lister } = ctx.clusterRoles;
  const role = lister.get(name);
  if (role?.aggregationRule === undefined) return done;
  const rules = aggregatedRules(role, lister.list());
  if (semanticEqual(rules, role.rules ?? [])) return done;
  const applied = { apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", metadata: { name }, rules };
  try {
    await ctx.client.patch(clusterRoles, { name }, { type: "apply", body: applied }, { fieldManager, force: true, signal });
  } catch (err) {
    // A server without server-side apply responds with 415 Unsupported Media Type.
    if (!(err instanceof StatusError) || err.code !== 415) throw err;
    await ctx.client.update<ClusterRole>(clusterRoles, { ...role, rules }, { signal });
  }
  return done;
}

/** Pure: collects the rules of matching roles by selector, then by name, without duplicates and without the role itself. */
export function aggregatedRules(role: ClusterRole, all: readonly ClusterRole[]): PolicyRule[] {
  const rules = new Map<string, PolicyRule>();
  const byName = all.toSorted((a, b) => ((a.metadata.name ?? "") < (b.metadata.name ?? "") ? -1 : 1));
  for (const selector of role.aggregationRule?.clusterRoleSelectors ?? []) {
    const labels = LabelSelector.ofCached(selector);
    for (const { metadata, rules: theirs } of byName) {
      if (metadata.name === role.metadata.name || !labels.matches(metadata.labels)) continue;
      for (const rule of theirs ?? []) rules.getOrInsert(contentOf(rule), rule);
    }
  }
  return [...rules.values()];
}

/** The same text for rules that are semantically equal: absent and empty lists are the same. */
function contentOf({ verbs, apiGroups, resources, resourceNames, nonResourceURLs }: PolicyRule): string {
  return JSON.stringify([verbs, apiGroups, resources, resourceNames, nonResourceURLs].map((list) => list ?? []));
}
