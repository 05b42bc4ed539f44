/**
 * Allows claims to grow only when their StorageClass has `allowVolumeExpansion`.
 * Source: plugin/pkg/admission/storage/persistentvolume/resize/admission.go
 */
import { Quantity } from "@coxswain/apimachinery/objects/meta/quantity";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { storageClasses } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { refuse } from "../errors.ts";
import type { AdmissionPlugin } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";

interface Claim extends KubeObject {
  spec?: { storageClassName?: string; resources?: { requests?: Record<string, string> } };
  status?: { phase?: string };
}
interface StorageClass extends KubeObject {
  allowVolumeExpansion?: boolean;
}

export function persistentVolumeClaimResize(ctx: PluginContext): AdmissionPlugin<Claim> {
  const informer = ctx.informers.for<StorageClass>(storageClasses);
  return {
    name: "PersistentVolumeClaimResize",
    handles: (operation) => operation === "UPDATE",
    resources: ["persistentvolumeclaims"],
    ready: () => informer.synced,
    async validate(attributes) {
      const { resource, subresource, object, oldObject } = attributes;
      if (resource.group !== "" || resource.resource !== "persistentvolumeclaims" || subresource !== "") return;
      const [next, before] = [object!, oldObject!];
      const wanted = Quantity.tryParse(next.spec?.resources?.requests?.["storage"] ?? "0");
      const had = Quantity.tryParse(before.spec?.resources?.requests?.["storage"] ?? "0");
      if (wanted === undefined || had === undefined || wanted.cmp(had) <= 0) return;
      if (before.status?.phase !== "Bound") throw refuse(attributes, "Only bound persistent volume claims can be expanded");
      const className = classOf(next);
      const isSame = className !== "" && className === classOf(before);
      if (isSame && informer.lister.get(className)?.allowVolumeExpansion === true) return;
      throw refuse(
        attributes,
        "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize",
      );
    },
  };
}

/** The legacy annotation takes precedence over the field. */
function classOf({ metadata, spec }: Claim): string {
  return metadata.annotations?.["volume.beta.kubernetes.io/storage-class"] ?? spec?.storageClassName ?? "";
}
