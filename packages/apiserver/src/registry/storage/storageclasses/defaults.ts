import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { StorageClass } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";

export function defaultStorageClass(object: KubeObject): void {
  const storageClass = object as StorageClass;
  storageClass.reclaimPolicy ??= "Delete";
  storageClass.volumeBindingMode ??= "Immediate";
}
