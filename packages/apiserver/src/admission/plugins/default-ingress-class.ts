/**
 * Ingresses that name no class get the default one.
 * Source: plugin/pkg/admission/network/defaultingressclass/admission.go
 */

import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import { ingressClasses } from "@coxswain/apimachinery/schema/kinds/resources";
import type { PluginContext } from "../catalogue.ts";
import { refuse } from "../errors.ts";
import type { AdmissionPlugin } from "../plugin.ts";

const defaultAnnotation = "ingressclass.kubernetes.io/is-default-class";
const classAnnotation = "kubernetes.io/ingress.class";

interface Ingress extends KubeObject {
  spec: { ingressClassName?: string };
}

export function defaultIngressClass(ctx: PluginContext): AdmissionPlugin {
  const informer = ctx.informers.for<KubeObject>(ingressClasses);
  return {
    name: "DefaultIngressClass",
    handles: (operation) => operation === "CREATE",
    ready: () => informer.synced,
    async admit(attributes) {
      const { resource, subresource, object } = attributes;
      if (resource.group !== "networking.k8s.io" || resource.resource !== "ingresses" || subresource !== "") return;
      const ingress = object as Ingress;
      const { annotations } = ingress.metadata;
      if (ingress.spec?.ingressClassName !== undefined) return;
      if (annotations !== undefined && Object.hasOwn(annotations, classAnnotation)) return;
      const defaults = informer.lister.list().filter(({ metadata }) => metadata.annotations?.[defaultAnnotation] === "true");
      if (defaults.length > 1) {
        const found = `${defaults.length} default IngressClasses were found, only 1 allowed`;
        throw refuse(attributes, `Internal error occurred: ${found}`);
      }
      const name = defaults[0]?.metadata.name;
      if (name !== undefined) ingress.spec = { ...ingress.spec, ingressClassName: name };
    },
  };
}
