import type { CSIDriver } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import { age, ageColumn, flag, nameColumn, tableOf, text } from "../../cells.ts";

export const csiDriverTable = tableOf<CSIDriver>(
  [
    nameColumn,
    flag("AttachRequired", "attachRequired indicates this CSI volume driver requires an attach operation."),
    flag(
      "PodInfoOnMount",
      "If set to true, podInfoOnMount indicates this CSI volume driver requires additional pod information during mount operations.",
    ),
    flag(
      "StorageCapacity",
      "If set to true, storageCapacity indicates that the CSI volume driver wants pod scheduling to consider the storage capacity that the driver deployment will report by creating CSIStorageCapacity objects.",
    ),
    text(
      "TokenRequests",
      "TokenRequests indicates the CSI driver needs pods' service account tokens it is mounting volume for to do necessary authentication.",
    ),
    flag(
      "RequiresRepublish",
      "RequiresRepublish indicates the CSI driver wants NodePublishVolume being periodically called to reflect any possible change in the mounted volume.",
    ),
    text("Modes", "volumeLifecycleModes defines what kind of volumes this CSI volume driver supports."),
    ageColumn,
  ],
  (driver, ages) => {
    const spec = driver.spec ?? {};
    const tokens = (spec.tokenRequests ?? []).map((request) => request.audience ?? "");
    const modes = spec.volumeLifecycleModes ?? [];
    return [
      driver.metadata.name ?? "",
      spec.attachRequired ?? true,
      spec.podInfoOnMount ?? false,
      spec.storageCapacity ?? false,
      tokens.length === 0 ? "<unset>" : tokens.join(","),
      spec.requiresRepublish ?? false,
      modes.length === 0 ? "<none>" : modes.join(","),
      age(driver, ages),
    ];
  },
);
