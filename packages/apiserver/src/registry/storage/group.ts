import { inGroup } from "../definition.ts";
import type { ResourceDefinition, ResourceVersionDefinition } from "../generic/resource.ts";
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
import { defaultVolumeAttachment } from "./volumeattachments/defaults.ts";
import { volumeAttachmentStatusStrategy, volumeAttachmentStrategy } from "./volumeattachments/strategy.ts";
import { volumeAttachmentTable } from "./volumeattachments/table.ts";

const group = "storage.k8s.io";

/** The deprecated v1alpha1 of a kind. @param use replacement, e.g. `v1 VolumeAttachment` */
function alpha(use: string): ResourceVersionDefinition {
  const kind = use.split(" ")[1];
  const deprecation = `${group}/v1alpha1 ${kind} is deprecated in v1.21+, unavailable in v1.24+; use ${group}/${use}`;
  return { version: "v1alpha1", servedByDefault: false, deprecation };
}

export function storageResources(): ResourceDefinition[] {
  return inGroup(group, [
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
      versions: ["v1beta1", alpha("v1beta1 CSIStorageCapacity")],
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
      versions: [
        { version: "v1", defaults: defaultVolumeAttachment },
        { ...alpha("v1 VolumeAttachment"), defaults: defaultVolumeAttachment, statusServed: false },
      ],
      strategy: volumeAttachmentStrategy,
      statusStrategy: volumeAttachmentStatusStrategy,
      table: volumeAttachmentTable,
    },
  ]);
}
