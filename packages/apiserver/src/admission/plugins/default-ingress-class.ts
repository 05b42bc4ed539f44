import { ingressClasses } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { AdmissionPlugin } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";
import { newDefaultClass } from "./default-class.ts";

/** Sets the default IngressClass. Source: plugin/pkg/admission/network/defaultingressclass/admission.go */
export function defaultIngressClass(ctx: PluginContext): AdmissionPlugin {
  return newDefaultClass(ctx, {
    name: "DefaultIngressClass",
    of: { group: "networking.k8s.io", resource: "ingresses" },
    classes: ingressClasses,
    field: "ingressClassName",
    annotation: "kubernetes.io/ingress.class",
    defaultAnnotations: ["ingressclass.kubernetes.io/is-default-class"],
    tooMany: (count) => `${count} default IngressClasses were found, only 1 allowed`,
  });
}
