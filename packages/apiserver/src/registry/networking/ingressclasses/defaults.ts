import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { IngressClass } from "@coxswain/apimachinery/objects/schema/kinds/networking/v1";

export function defaultIngressClass(object: KubeObject): void {
  const parameters = (object as IngressClass).spec?.parameters;
  if (parameters) parameters.scope ??= "Cluster";
}
