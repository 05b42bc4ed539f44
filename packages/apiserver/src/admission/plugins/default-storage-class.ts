import { storageClasses } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { AdmissionPlugin } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";
import { newDefaultClass } from "./default-class.ts";

/** Sets the default StorageClass. Source: plugin/pkg/admission/storage/storageclass/setdefault/admission.go */
export function defaultStorageClass(ctx: PluginContext): AdmissionPlugin {
  return newDefaultClass(ctx, {
    name: "DefaultStorageClass",
    of: { group: "", resource: "persistentvolumeclaims" },
    classes: storageClasses,
    field: "storageClassName",
    annotation: "volume.beta.kubernetes.io/storage-class",
    defaultAnnotations: ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"],
    tooMany: (count) => `${count} default StorageClasses were found`,
  });
}
