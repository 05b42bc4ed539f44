import type { PersistentVolumeClaim } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { age, tableOf } from "../../cells.ts";

export const persistentVolumeClaimTable = tableOf<PersistentVolumeClaim>("persistentvolumeclaims", (claim, ages) => {
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
});

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
