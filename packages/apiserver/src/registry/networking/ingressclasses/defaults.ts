import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { IngressClass } from "@coxswain/apimachinery/schema/kinds/networking/v1";

export function defaultIngressClass(object: KubeObject): void {
  const parameters = (object as IngressClass).spec?.parameters;
  if (parameters) parameters.scope ??= "Cluster";
}
