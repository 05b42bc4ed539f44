import type { StorageClass } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import { age, tableOf } from "../../cells.ts";

const defaultAnnotations = ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];

export const storageClassTable = tableOf<StorageClass>("storageclasses", (storageClass, ages) => {
  const isDefault = defaultAnnotations.some((key) => storageClass.metadata.annotations?.[key] === "true");
  const name = storageClass.metadata.name ?? "";
  return [
    isDefault ? `${name} (default)` : name,
    storageClass.provisioner ?? "",
    storageClass.reclaimPolicy ?? "Delete",
    storageClass.volumeBindingMode ?? "Immediate",
    storageClass.allowVolumeExpansion ?? false,
    age(storageClass, ages),
  ];
});
