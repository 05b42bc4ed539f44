import type { CSIDriver } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";

/** Source: pkg/apis/storage/v1/defaults.go */
export function defaultCsiDriver(driver: CSIDriver): void {
  driver.spec ??= {};
  const { spec } = driver;
  spec.attachRequired ??= true;
  spec.podInfoOnMount ??= false;
  spec.storageCapacity ??= false;
  spec.fsGroupPolicy ??= "ReadWriteOnceWithFSType";
  if (!spec.volumeLifecycleModes?.length) spec.volumeLifecycleModes = ["Persistent"];
  spec.requiresRepublish ??= false;
}
