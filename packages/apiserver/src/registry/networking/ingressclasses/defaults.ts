import type { IngressClass } from "@coxswain/apimachinery/objects/schema/kinds/networking/v1";

export function defaultIngressClass(object: IngressClass): void {
  const parameters = object.spec?.parameters;
  if (parameters) parameters.scope ??= "Cluster";
}
