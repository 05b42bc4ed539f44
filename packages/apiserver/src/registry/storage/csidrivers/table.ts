import type { CSIDriver } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import { age, tableOf } from "../../cells.ts";

export const csiDriverTable = tableOf<CSIDriver>("csidrivers", (driver, ages) => {
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
});
