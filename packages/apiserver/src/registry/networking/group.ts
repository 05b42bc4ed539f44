import { inGroup } from "../definition.ts";
import type { ResourceDefinition } from "../generic/resource.ts";
import { defaultIngressClass } from "./ingressclasses/defaults.ts";
import { ingressClassStrategy } from "./ingressclasses/strategy.ts";
import { ingressClassTable } from "./ingressclasses/table.ts";
import { defaultIngressV1beta1, ingressFromV1beta1, ingressToV1beta1 } from "./ingresses/conversion.ts";
import { ingressStatusStrategy, ingressStrategy } from "./ingresses/strategy.ts";
import { ingressTable } from "./ingresses/table.ts";
import { defaultNetworkPolicy } from "./networkpolicies/defaults.ts";
import { networkPolicyStrategy } from "./networkpolicies/strategy.ts";
import { networkPolicyTable } from "./networkpolicies/table.ts";

const formerIngress = {
  version: "v1beta1",
  defaults: defaultIngressV1beta1,
  toHub: ingressFromV1beta1,
  fromHub: ingressToV1beta1,
};

export function networkingResources(): ResourceDefinition[] {
  return inGroup("networking.k8s.io", [
    {
      resource: "ingressclasses",
      kind: "IngressClass",
      namespaced: false,
      versions: [{ version: "v1", defaults: defaultIngressClass }],
      strategy: ingressClassStrategy,
      table: ingressClassTable,
    },
    {
      resource: "ingresses",
      kind: "Ingress",
      shortNames: ["ing"],
      namespaced: true,
      versions: ["v1"],
      formerVersions: [formerIngress, { ...formerIngress, group: "extensions" }],
      storageFolder: "ingress",
      strategy: ingressStrategy,
      statusStrategy: ingressStatusStrategy,
      table: ingressTable,
    },
    {
      resource: "networkpolicies",
      kind: "NetworkPolicy",
      shortNames: ["netpol"],
      namespaced: true,
      versions: [{ version: "v1", defaults: defaultNetworkPolicy }],
      strategy: networkPolicyStrategy,
      table: networkPolicyTable,
    },
  ]);
}
