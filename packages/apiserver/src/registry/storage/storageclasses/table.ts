import type { StorageClass } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import { age, ageColumn, nameColumn, tableOf, text } from "../../cells.ts";

const defaultAnnotations = ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];

export const storageClassTable = tableOf<StorageClass>(
  [
    nameColumn,
    text("Provisioner", "Provisioner indicates the type of the provisioner."),
    text(
      "ReclaimPolicy",
      "Dynamically provisioned PersistentVolumes of this storage class are created with this reclaimPolicy. Defaults to Delete.",
    ),
    text(
      "VolumeBindingMode",
      "VolumeBindingMode indicates how PersistentVolumeClaims should be provisioned and bound.  When unset, VolumeBindingImmediate is used. This field is only honored by servers that enable the VolumeScheduling feature.",
    ),
    text("AllowVolumeExpansion", "AllowVolumeExpansion shows whether the storage class allow volume expand"),
    ageColumn,
  ],
  (storageClass, ages) => {
    const isDefault = defaultAnnotations.some((key) => storageClass.metadata.annotations?.[key] === "true");
    const name = storageClass.metadata.name ?? "";
    return [
      isDefault ? `${name} (default)` : name,
      storageClass.provisioner ?? "",
      storageClass.reclaimPolicy ?? "Delete",
      storageClass.volumeBindingMode ?? "<unset>",
      storageClass.allowVolumeExpansion ?? false,
      age(storageClass, ages),
    ];
  },
);
