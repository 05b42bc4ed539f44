import type { PersistentVolumeClaim } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { age, ageColumn, nameColumn, tableOf, text, wide } from "../../cells.ts";

export const persistentVolumeClaimTable = tableOf<PersistentVolumeClaim>(
  [
    nameColumn,
    text("Status", "phase represents the current phase of PersistentVolumeClaim."),
    text("Volume", "volumeName is the binding reference to the PersistentVolume backing this claim."),
    text("Capacity", "capacity represents the actual resources of the underlying volume."),
    text("Access Modes", "accessModes contains the actual access modes the volume backing the PVC has."),
    text("StorageClass", "StorageClass of the pvc"),
    ageColumn,
    wide(
      "VolumeMode",
      "volumeMode defines what type of volume is required by the claim. Value of Filesystem is implied when not included in claim spec.",
    ),
  ],
  (claim, ages) => {
    const volume = claim.spec?.volumeName ?? "";
    const phase = claim.metadata.deletionTimestamp ? "Terminating" : (claim.status?.phase ?? "");
    return [
      claim.metadata.name ?? "",
      phase,
      volume,
      volume === "" ? "" : String(claim.status?.capacity?.storage ?? "0"),
      volume === "" ? "" : accessModesText(claim.status?.accessModes),
      claim.metadata.annotations?.["volume.beta.kubernetes.io/storage-class"] ?? claim.spec?.storageClassName ?? "",
      age(claim, ages),
      claim.spec?.volumeMode ?? "<unset>",
    ];
  },
);

const shortModes: readonly (readonly [string, string])[] = [
  ["ReadWriteOnce", "RWO"],
  ["ReadOnlyMany", "ROX"],
  ["ReadWriteMany", "RWX"],
  ["ReadWriteOncePod", "RWOP"],
];

/** `RWO,RWX`. Source: pkg/apis/core/helper GetAccessModesAsString */
export function accessModesText(modes: readonly string[] | undefined): string {
  return shortModes
    .filter(([mode]) => (modes ?? []).includes(mode))
    .map(([, short]) => short)
    .join(",");
}
