import { inGroup } from "../definition.ts";
import type { ResourceDefinition } from "../generic/resource.ts";
import { defaultCsiDriver } from "./csidrivers/defaults.ts";
import { csiDriverStrategy } from "./csidrivers/strategy.ts";
import { csiDriverTable } from "./csidrivers/table.ts";
import { csiNodeStrategy } from "./csinodes/strategy.ts";
import { csiNodeTable } from "./csinodes/table.ts";
import { csiStorageCapacityStrategy } from "./csistoragecapacities/strategy.ts";
import { csiStorageCapacityTable } from "./csistoragecapacities/table.ts";
import { defaultStorageClass } from "./storageclasses/defaults.ts";
import { storageClassStrategy } from "./storageclasses/strategy.ts";
import { storageClassTable } from "./storageclasses/table.ts";
import { volumeAttachmentStatusStrategy, volumeAttachmentStrategy } from "./volumeattachments/strategy.ts";
import { volumeAttachmentTable } from "./volumeattachments/table.ts";

export function storageResources(): ResourceDefinition[] {
  return inGroup("storage.k8s.io", [
    {
      resource: "csidrivers",
      returnDeletedObject: true,
      kind: "CSIDriver",
      namespaced: false,
      versions: [{ version: "v1", defaults: defaultCsiDriver }],
      strategy: csiDriverStrategy,
      table: csiDriverTable,
    },
    {
      resource: "csinodes",
      returnDeletedObject: true,
      kind: "CSINode",
      namespaced: false,
      versions: ["v1"],
      strategy: csiNodeStrategy,
      table: csiNodeTable,
    },
    {
      resource: "csistoragecapacities",
      kind: "CSIStorageCapacity",
      namespaced: true,
      versions: ["v1beta1", { version: "v1alpha1", servedByDefault: false }],
      strategy: csiStorageCapacityStrategy,
      table: csiStorageCapacityTable,
    },
    {
      resource: "storageclasses",
      returnDeletedObject: true,
      kind: "StorageClass",
      shortNames: ["sc"],
      namespaced: false,
      versions: [{ version: "v1", defaults: defaultStorageClass }],
      strategy: storageClassStrategy,
      table: storageClassTable,
    },
    {
      resource: "volumeattachments",
      returnDeletedObject: true,
      kind: "VolumeAttachment",
      namespaced: false,
      versions: ["v1", { version: "v1alpha1", servedByDefault: false, statusServed: false }],
      strategy: volumeAttachmentStrategy,
      statusStrategy: volumeAttachmentStatusStrategy,
      table: volumeAttachmentTable,
    },
  ]);
}
