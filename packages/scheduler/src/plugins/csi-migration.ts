import type { PersistentVolume, Volume } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { CSINode } from "@coxswain/apimachinery/schema/kinds/storage/v1";
import {
  isMigratedOnNode,
  isMigrated as isTakenOver,
  type MigratedPlugin,
  migratedPlugins,
} from "@coxswain/apimachinery/volumes/migration";
import type { PluginContext } from "../framework/plugin-context.ts";

/** A kind of disk that Kubernetes once attached itself and that a CSI driver may have taken over. */
export interface InTreeDisk extends MigratedPlugin {
  /** The disk behind a pod's volume, or a persistent one. */
  readonly idOf: (source: Pick<Volume & PersistentVolume["spec"], DiskField>) => string | undefined;
}
type DiskField = "awsElasticBlockStore" | "gcePersistentDisk" | "azureDisk" | "cinder" | "portworxVolume" | "rbd";

/** Those that count against what a node can have attached. Source: k8s.io/csi-translation-lib plugins */
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
  if (row === undefined) throw new Error(`nothing is known of ${source}`);
  return { ...row, idOf };
}

export function isMigrated(disk: InTreeDisk, node: CSINode | undefined, gates: PluginContext["gates"]): boolean {
  return isTakenOver(disk, gates) && isMigratedOnNode(disk.plugin, node);
}
