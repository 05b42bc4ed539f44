/**
 * Adds the protection finalizers to new volumes and claims, which delay deletion while they are in use.
 * Source: plugin/pkg/admission/storage/storageobjectinuseprotection/admission.go
 */
import type { AdmissionPlugin } from "../plugin.ts";

const finalizerOf: Readonly<Record<string, string>> = {
  persistentvolumes: "kubernetes.io/pv-protection",
  persistentvolumeclaims: "kubernetes.io/pvc-protection",
};

export const storageObjectInUseProtection = (): AdmissionPlugin => ({
  name: "StorageObjectInUseProtection",
  handles: (operation) => operation === "CREATE",
  resources: Object.keys(finalizerOf),
  async admit({ resource, subresource, object }) {
    const finalizer = resource.group === "" && subresource === "" ? finalizerOf[resource.resource] : undefined;
    if (finalizer === undefined || object === undefined) return;
    const { metadata } = object;
    if (!metadata.finalizers?.includes(finalizer)) metadata.finalizers = [...(metadata.finalizers ?? []), finalizer];
  },
});
