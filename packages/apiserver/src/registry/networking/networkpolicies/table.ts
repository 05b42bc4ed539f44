import type { NetworkPolicy } from "@coxswain/apimachinery/objects/schema/kinds/networking/v1";
import { age, ageColumn, nameColumn, selectorText, tableOf, text } from "../../cells.ts";

export const networkPolicyTable = tableOf<NetworkPolicy>(
  [
    nameColumn,
    text(
      "Pod-Selector",
      "Selects the pods to which this NetworkPolicy object applies. The array of ingress rules is applied to any pods selected by this field. Multiple network policies can select the same set of pods. In this case, the ingress rules for each are combined additively. This field is NOT optional and follows standard label selector semantics. An empty podSelector matches all pods in this namespace.",
    ),
    ageColumn,
  ],
  (policy, ages) => [policy.metadata.name ?? "", selectorText(policy.spec?.podSelector), age(policy, ages)],
);
