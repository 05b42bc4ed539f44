import type { PersistentVolume, Volume } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { CSINode } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import {
  isMigratedOnNode,
  isMigrated as isTakenOver,
  type MigratedPlugin,
  migratedPlugins,
} from "@coxswain/apimachinery/volumes/migration";
import type { PluginContext } from "./plugin-context.ts";

/** An in-tree volume plugin that may be migrated to a CSI driver. */
export interface InTreeDisk extends MigratedPlugin {
  /** ID of the disk in a pod's volume or a persistent volume; undefined for volumes of other plugins. */
  readonly idOf: (source: Pick<Volume & PersistentVolume["spec"], DiskField>) => string | undefined;
}
type DiskField = "awsElasticBlockStore" | "gcePersistentDisk" | "azureDisk" | "cinder" | "portworxVolume" | "rbd";

/** Plugins whose volumes count towards the attach limits of nodes. Source: k8s.io/csi-translation-lib plugins */
export const inTreeDisks = {
  EBS: disk("awsElasticBlockStore", ({ awsElasticBlockStore }) => awsElasticBlockStore?.volumeID),
  GCE: disk("gcePersistentDisk", ({ gcePersistentDisk }) => gcePersistentDisk?.pdName),
  AzureDisk: disk("azureDisk", ({ azureDisk }) => azureDisk?.diskName),
  Cinder: disk("cinder", ({ cinder }) => cinder?.volumeID),
  Portworx: disk("portworxVolume", ({ portworxVolume }) => portworxVolume?.volumeID),
  RBD: disk("rbd", ({ rbd }) => rbd?.image),
} as const;

function disk(source: DiskField, idOf: InTreeDisk["idOf"]): InTreeDisk {
  const row = migratedPlugins.find((known) => known.source === source);
  if (row === undefined) throw new Error(`no information about ${source}`);
  return { ...row, idOf };
}

/** True when the CSI driver handles volumes of this plugin on the node. */
export function isMigrated(disk: InTreeDisk, node: CSINode | undefined, gates: PluginContext["gates"]): boolean {
  return isTakenOver(disk, gates) && isMigratedOnNode(disk.plugin, node);
}
