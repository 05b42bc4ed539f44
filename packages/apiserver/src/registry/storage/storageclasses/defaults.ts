import type { StorageClass } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";

export function defaultStorageClass(storageClass: StorageClass): void {
  storageClass.reclaimPolicy ??= "Delete";
  storageClass.volumeBindingMode ??= "Immediate";
}
