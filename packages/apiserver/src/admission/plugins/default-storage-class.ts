/**
 * Claims that name no class get the default one.
 * Source: plugin/pkg/admission/storage/storageclass/setdefault/admission.go
 */

import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import { storageClasses } from "@coxswain/apimachinery/schema/kinds/resources";
import type { PluginContext } from "../catalogue.ts";
import { refuse } from "../errors.ts";
import type { AdmissionPlugin } from "../plugin.ts";

const defaultAnnotations = ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
const classAnnotation = "volume.beta.kubernetes.io/storage-class";

interface Claim extends KubeObject {
  spec?: { storageClassName?: string };
}

export function defaultStorageClass(ctx: PluginContext): AdmissionPlugin {
  const informer = ctx.informers.for<KubeObject>(storageClasses);
  return {
    name: "DefaultStorageClass",
    handles: (operation) => operation === "CREATE",
    ready: () => informer.synced,
    async admit(attributes) {
      const { resource, subresource, object } = attributes;
      if (resource.group !== "" || resource.resource !== "persistentvolumeclaims" || subresource !== "") return;
      const claim = object as Claim;
      const { annotations } = claim.metadata;
      if (claim.spec?.storageClassName !== undefined) return;
      if (annotations !== undefined && Object.hasOwn(annotations, classAnnotation)) return;
      const defaults = informer.lister
        .list()
        .filter(({ metadata }) => defaultAnnotations.some((annotation) => metadata.annotations?.[annotation] === "true"));
      if (defaults.length > 1) {
        throw refuse(attributes, `Internal error occurred: ${defaults.length} default StorageClasses were found`);
      }
      const name = defaults[0]?.metadata.name;
      if (name !== undefined) claim.spec = { ...claim.spec, storageClassName: name };
    },
  };
}
