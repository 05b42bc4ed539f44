import type { PersistentVolumeSource, VolumeSource } from "../objects/schema/kinds/core/v1.ts";
import type { CSINode } from "../objects/schema/kinds/storage/v1.ts";

/** An in-tree plugin whose volumes a CSI driver handles when the feature gate is on. */
export interface MigratedPlugin {
  readonly plugin: string;
  /** The plugin's field in the volumes of pods and in PersistentVolumes. */
  readonly source: keyof PersistentVolumeSource & keyof VolumeSource;
  readonly driver: string;
  readonly gate: string;
}

/** Source: staging/src/k8s.io/csi-translation-lib/plugins; pkg/volume/csimigration */
export const migratedPlugins: readonly MigratedPlugin[] = [
  { plugin: "kubernetes.io/aws-ebs", source: "awsElasticBlockStore", driver: "ebs.csi.aws.com", gate: "CSIMigrationAWS" },
  { plugin: "kubernetes.io/gce-pd", source: "gcePersistentDisk", driver: "pd.csi.storage.gke.io", gate: "CSIMigrationGCE" },
  { plugin: "kubernetes.io/cinder", source: "cinder", driver: "cinder.csi.openstack.org", gate: "CSIMigrationOpenStack" },
  { plugin: "kubernetes.io/azure-disk", source: "azureDisk", driver: "disk.csi.azure.com", gate: "CSIMigrationAzureDisk" },
  { plugin: "kubernetes.io/azure-file", source: "azureFile", driver: "file.csi.azure.com", gate: "CSIMigrationAzureFile" },
  {
    plugin: "kubernetes.io/vsphere-volume",
    source: "vsphereVolume",
    driver: "csi.vsphere.vmware.com",
    gate: "CSIMigrationvSphere",
  },
  { plugin: "kubernetes.io/portworx-volume", source: "portworxVolume", driver: "pxd.portworx.com", gate: "CSIMigrationPortworx" },
  { plugin: "kubernetes.io/rbd", source: "rbd", driver: "rbd.csi.ceph.com", gate: "csiMigrationRBD" },
];

/** On a CSINode: comma-separated in-tree plugins that are migrated on the node. */
export const migratedPluginsAnnotation = "storage.alpha.kubernetes.io/migrated-plugins";

/** True when the kubelet of the node reports the plugin as migrated. */
export function isMigratedOnNode(plugin: string, node: CSINode | undefined): boolean {
  return node?.metadata.annotations?.[migratedPluginsAnnotation]?.split(",").includes(plugin) === true;
}

/** @returns the CSI driver of a migrated in-tree plugin; undefined when the plugin is not migrated */
export function driverOf(plugin: string, gates: { enabled(name: string): boolean }): string | undefined {
  const row = migratedPlugins.find((known) => known.plugin === plugin);
  return row !== undefined && isMigrated(row, gates) ? row.driver : undefined;
}

/** @returns the migrated in-tree plugin of a volume; undefined for all other volumes */
export function migratedPluginOf(
  source: VolumeSource | PersistentVolumeSource,
  gates: { enabled(name: string): boolean },
): MigratedPlugin | undefined {
  const row = migratedPlugins.find((known) => source[known.source] !== undefined);
  return row !== undefined && isMigrated(row, gates) ? row : undefined;
}

/** True when the feature gates for migration of the plugin are on. */
export function isMigrated({ gate }: MigratedPlugin, gates: { enabled(name: string): boolean }): boolean {
  return gates.enabled("CSIMigration") && gates.enabled(gate);
}
