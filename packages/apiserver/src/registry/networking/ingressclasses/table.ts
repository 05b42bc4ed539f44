import type { IngressClass } from "@coxswain/apimachinery/objects/schema/kinds/networking/v1";
import { age, ageColumn, nameColumn, tableOf, text } from "../../cells.ts";

export const ingressClassTable = tableOf<IngressClass>(
  [
    nameColumn,
    text("Controller", "Controller that is responsible for handling this class"),
    text("Parameters", "A reference to a resource with additional parameters"),
    ageColumn,
  ],
  (ingressClass, ages) => {
    const parameters = ingressClass.spec?.parameters;
    const kind = parameters?.apiGroup ? `${parameters.kind}.${parameters.apiGroup}` : parameters?.kind;
    return [
      ingressClass.metadata.name ?? "",
      ingressClass.spec?.controller ?? "",
      parameters ? `${kind}/${parameters.name}` : "<none>",
      age(ingressClass, ages),
    ];
  },
);
