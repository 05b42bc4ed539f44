import type { CSIStorageCapacity } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1beta1";
import { tableOf } from "../../cells.ts";

export const csiStorageCapacityTable = tableOf<CSIStorageCapacity>("csistoragecapacities", (capacity) => [
  capacity.metadata.name ?? "",
  capacity.storageClassName ?? "",
  capacity.capacity === undefined ? "<unset>" : String(capacity.capacity),
]);
