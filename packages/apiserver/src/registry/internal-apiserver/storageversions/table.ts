import type { Unstructured } from "@coxswain/apimachinery/objects/meta/types";
import { age, ageColumn, nameColumn, text } from "../../cells.ts";
import type { Ages, TableColumns } from "../../generic/strategy.ts";

interface StorageVersionStatus {
  commonEncodingVersion?: string;
  storageVersions?: { apiServerID?: string; encodingVersion?: string }[];
}

export const storageVersionTable: TableColumns = {
  columns: [
    nameColumn,
    text(
      "CommonEncodingVersion",
      "If all API server instances agree on the same encoding storage version, then this field is set to that version.",
    ),
    text("StorageVersions", "A list of reported storage versions per API server instance."),
    ageColumn,
  ],
  cells(object: Unstructured, ages: Ages) {
    const status = (object.status ?? {}) as StorageVersionStatus;
    const versions = (status.storageVersions ?? []).map((v) => `${v.apiServerID ?? ""}=${v.encodingVersion ?? ""}`);
    return [object.metadata.name ?? "", status.commonEncodingVersion ?? "<unset>", versions.join(", "), age(object, ages)];
  },
};
