import type { PersistentVolume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { age, ageColumn, nameColumn, tableOf, text, wide } from "../../cells.ts";
import { accessModesText } from "../persistentvolumeclaims/table.ts";

export const persistentVolumeTable = tableOf<PersistentVolume>(
  [
    nameColumn,
    text("Capacity", "capacity is the description of the persistent volume's resources and capacity."),
    text("Access Modes", "accessModes contains all ways the volume can be mounted."),
    text(
      "Reclaim Policy",
      "persistentVolumeReclaimPolicy defines what happens to a persistent volume when released from its claim.",
    ),
    text("Status", "phase indicates if a volume is available, bound to a claim, or released by a claim."),
    text("Claim", "claimRef is part of a bi-directional binding between PersistentVolume and PersistentVolumeClaim."),
    text("StorageClass", "StorageClass of the pv"),
    text(
      "Reason",
      "reason is a brief CamelCase string that describes any failure and is meant for machine parsing and tidy display in the CLI.",
    ),
    ageColumn,
    wide(
      "VolumeMode",
      "volumeMode defines if a volume is intended to be used with a formatted filesystem or to remain in raw block state. Value of Filesystem is implied when not included in spec.",
    ),
  ],
  (volume, ages) => {
    const claim = volume.spec?.claimRef;
    return [
      volume.metadata.name ?? "",
      String(volume.spec?.capacity?.storage ?? "0"),
      accessModesText(volume.spec?.accessModes),
      volume.spec?.persistentVolumeReclaimPolicy ?? "",
      volume.metadata.deletionTimestamp ? "Terminating" : (volume.status?.phase ?? ""),
      claim ? `${claim.namespace ?? ""}/${claim.name ?? ""}` : "",
      volume.metadata.annotations?.["volume.beta.kubernetes.io/storage-class"] ?? volume.spec?.storageClassName ?? "",
      volume.status?.reason ?? "",
      age(volume, ages),
      volume.spec?.volumeMode ?? "<unset>",
    ];
  },
);
