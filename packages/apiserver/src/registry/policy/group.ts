import { inGroup } from "../definition.ts";
import type { ResourceDefinition } from "../generic/resource.ts";
import { budgetFromV1beta1, budgetOfV1, budgetToV1beta1 } from "./poddisruptionbudgets/conversion.ts";
import { podDisruptionBudgetStatusStrategy, podDisruptionBudgetStrategy } from "./poddisruptionbudgets/strategy.ts";
import { podDisruptionBudgetTable } from "./poddisruptionbudgets/table.ts";
import { defaultPodSecurityPolicy } from "./podsecuritypolicies/defaults.ts";
import { podSecurityPolicyStrategy } from "./podsecuritypolicies/strategy.ts";
import { podSecurityPolicyTable } from "./podsecuritypolicies/table.ts";

export function policyResources(): ResourceDefinition[] {
  return inGroup("policy", [
    {
      resource: "poddisruptionbudgets",
      kind: "PodDisruptionBudget",
      shortNames: ["pdb"],
      namespaced: true,
      versions: [
        { version: "v1", toHub: budgetOfV1 },
        {
          version: "v1beta1",
          toHub: budgetFromV1beta1,
          fromHub: budgetToV1beta1,
          deprecation:
            "policy/v1beta1 PodDisruptionBudget is deprecated in v1.21+, unavailable in v1.25+; use policy/v1 PodDisruptionBudget",
        },
      ],
      // Storage version as in upstream 1.23; also readable by API servers of 1.20.
      storage: { group: "policy", version: "v1beta1" },
      strategy: podDisruptionBudgetStrategy,
      statusStrategy: podDisruptionBudgetStatusStrategy,
      table: podDisruptionBudgetTable,
    },
    {
      resource: "podsecuritypolicies",
      returnDeletedObject: true,
      kind: "PodSecurityPolicy",
      shortNames: ["psp"],
      namespaced: false,
      versions: [
        {
          version: "v1beta1",
          defaults: defaultPodSecurityPolicy,
          deprecation: "policy/v1beta1 PodSecurityPolicy is deprecated in v1.21+, unavailable in v1.25+",
        },
      ],
      storageFolder: "podsecuritypolicy",
      strategy: podSecurityPolicyStrategy,
      table: podSecurityPolicyTable,
    },
  ]);
}
