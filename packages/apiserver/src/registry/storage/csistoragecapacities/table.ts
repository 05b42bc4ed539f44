import type { CSIStorageCapacity } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1beta1";
import { nameColumn, tableOf, text } from "../../cells.ts";

export const csiStorageCapacityTable = tableOf<CSIStorageCapacity>(
  [
    nameColumn,
    text("StorageClassName", "The name of the StorageClass that the reported capacity applies to."),
    text(
      "Capacity",
      "Capacity is the value reported by the CSI driver in its GetCapacityResponse for a GetCapacityRequest with topology and parameters that match the previous fields.",
    ),
  ],
  (capacity) => [
    capacity.metadata.name ?? "",
    capacity.storageClassName ?? "",
    capacity.capacity === undefined ? "<unset>" : String(capacity.capacity),
  ],
);
