import type { NetworkPolicy } from "@coxswain/apimachinery/objects/schema/kinds/networking/v1";
import { age, selectorText, tableOf } from "../../cells.ts";

export const networkPolicyTable = tableOf<NetworkPolicy>("networkpolicies", (policy, ages) => [
  policy.metadata.name ?? "",
  selectorText(policy.spec?.podSelector),
  age(policy, ages),
]);
