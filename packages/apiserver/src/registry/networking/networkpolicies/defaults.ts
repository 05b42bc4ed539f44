import type { NetworkPolicy } from "@coxswain/apimachinery/objects/schema/kinds/networking/v1";

/** Source: pkg/apis/networking/v1/defaults.go */
export function defaultNetworkPolicy(policy: NetworkPolicy): void {
  policy.spec ??= { podSelector: {} };
  const { spec } = policy;
  for (const rule of spec.ingress ?? []) for (const port of rule.ports ?? []) port.protocol ??= "TCP";
  for (const rule of spec.egress ?? []) for (const port of rule.ports ?? []) port.protocol ??= "TCP";
  if (!spec.policyTypes?.length) spec.policyTypes = spec.egress?.length ? ["Ingress", "Egress"] : ["Ingress"];
}
