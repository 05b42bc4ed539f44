import type { PersistentVolume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { age, tableOf } from "../../cells.ts";
import { accessModesText } from "../persistentvolumeclaims/table.ts";

export const persistentVolumeTable = tableOf<PersistentVolume>("persistentvolumes", (volume, ages) => {
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
});
