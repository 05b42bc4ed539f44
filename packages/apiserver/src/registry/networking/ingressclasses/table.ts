import type { IngressClass } from "@coxswain/apimachinery/objects/schema/kinds/networking/v1";
import { age, tableOf } from "../../cells.ts";

export const ingressClassTable = tableOf<IngressClass>("ingressclasses", (ingressClass, ages) => {
  const parameters = ingressClass.spec?.parameters;
  const kind = parameters?.apiGroup ? `${parameters.kind}.${parameters.apiGroup}` : parameters?.kind;
  return [
    ingressClass.metadata.name ?? "",
    ingressClass.spec?.controller ?? "",
    parameters ? `${kind}/${parameters.name}` : "<none>",
    age(ingressClass, ages),
  ];
});
