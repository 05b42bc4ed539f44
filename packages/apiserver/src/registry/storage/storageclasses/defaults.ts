import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { StorageClass } from "@coxswain/apimachinery/schema/kinds/storage/v1";

export function defaultStorageClass(object: KubeObject): void {
  const storageClass = object as StorageClass;
  storageClass.reclaimPolicy ??= "Delete";
  storageClass.volumeBindingMode ??= "Immediate";
}
