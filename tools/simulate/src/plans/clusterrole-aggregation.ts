import type { PolicyRule } from "@coxswain/apimachinery/objects/schema/kinds/rbac/v1";
import { clusterRoles } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { Stored } from "../invariants/view.ts";
import { allFaults, lasting, type Plan } from "./plan.ts";

const labels = { "example.com/aggregate-to-crew": "true" };
const aggregationRule = { clusterRoleSelectors: [{ matchLabels: labels }] };
const rule = (resource: string): PolicyRule => ({ apiGroups: [""], resources: [resource], verbs: ["get"] });
const target = (name: string) => ({ namespace: "", name });

/** ClusterRoles that a role aggregates are created, changed and deleted: in the end it has the rules of those that are there, and no others. */
export const clusterRoleAggregationPlan: Plan = {
  name: "clusterrole-aggregation",
  controllers: ["clusterrole-aggregation"],
  faults: allFaults,
  rules: lasting,
  async act(user) {
    await user.create(clusterRoles, { metadata: { name: "crew" }, aggregationRule, rules: [] });
    for (const name of ["bosun", "cook", "deckhand"]) {
      await user.create(clusterRoles, { metadata: { name, labels }, rules: [rule(`${name}s`)] });
      await user.pause(user.random() * 3_000);
    }
    await user.change(clusterRoles, target("cook"), (role) => Object.assign(role, { rules: [rule("meals")] }));
    await user.change(clusterRoles, target("deckhand"), ({ metadata }) => {
      metadata.labels = {};
    });
    await user.pause(user.random() * 3_000);
    // Last, so that no other change has its rules removed.
    await user.remove(clusterRoles, "bosun");
    await user.pause(user.random() * 3_000);
  },
  missing(view) {
    const { rules = [] } = (view.get("clusterroles", "crew") ?? {}) as Stored & { rules?: PolicyRule[] }; // cast: an object of that resource
    const found = JSON.stringify(rules.flatMap(({ resources = [] }) => resources));
    return found === '["meals"]' ? undefined : `the aggregated role has rules for ${found}`;
  },
};
