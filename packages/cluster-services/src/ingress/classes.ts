import type { Ingress, IngressClass } from "@coxswain/apimachinery/objects/schema/kinds/networking/v1";
import { className, controllerName } from "./names.ts";

/** The field's predecessor; it names a class, which need not exist. */
const classAnnotation = "kubernetes.io/ingress.class";
const defaultAnnotation = "ingressclass.kubernetes.io/is-default-class";

const isOwn = (found: IngressClass | undefined): boolean => found?.spec.controller === controllerName;
const isDefault = ({ metadata }: IngressClass): boolean => metadata.annotations?.[defaultAnnotation] === "true";

/**
 * Pure: whether this controller serves the Ingress. One without a class belongs to the default class, as an Ingress that is created
 * after that class does.
 */
export function isServed({ metadata, spec }: Ingress, classes: readonly IngressClass[]): boolean {
  const named = metadata.annotations?.[classAnnotation] ?? spec.ingressClassName;
  if (named !== undefined) return isOwn(classes.find((one) => one.metadata.name === named));
  const defaults = classes.filter(isDefault);
  return defaults.length === 1 && isOwn(defaults[0]);
}

/** Pure: the class that is made, the default one unless another is. */
export function newIngressClass(existing: readonly IngressClass[]): IngressClass {
  return {
    apiVersion: "networking.k8s.io/v1",
    kind: "IngressClass",
    metadata: {
      name: className,
      labels: { "app.kubernetes.io/managed-by": "coxswain-services" },
      ...(!existing.some(isDefault) && { annotations: { [defaultAnnotation]: "true" } }),
    },
    spec: { controller: controllerName },
  };
}
