import type { StorageVersion } from "@coxswain/apimachinery/objects/schema/kinds/internal/v1alpha1";
import { age, firstThree, tableOf } from "../../cells.ts";

export const storageVersionTable = tableOf<StorageVersion>("storageversions", (object, ages) => {
  const { commonEncodingVersion, storageVersions } = object.status ?? {};
  const versions = (storageVersions ?? []).map((v) => `${v.apiServerID ?? ""}=${v.encodingVersion ?? ""}`);
  return [object.metadata.name ?? "", commonEncodingVersion ?? "<unset>", firstThree(versions), age(object, ages)];
});
