/** An in-tree plugin whose volumes a CSI driver takes over when its gate is on. */
export interface MigratedPlugin {
  readonly plugin: string;
  readonly driver: string;
  readonly gate: string;
}

/** Source: staging/src/k8s.io/csi-translation-lib/plugins; pkg/volume/csimigration */
export const migratedPlugins: readonly MigratedPlugin[] = [
  { plugin: "kubernetes.io/aws-ebs", driver: "ebs.csi.aws.com", gate: "CSIMigrationAWS" },
  { plugin: "kubernetes.io/gce-pd", driver: "pd.csi.storage.gke.io", gate: "CSIMigrationGCE" },
  { plugin: "kubernetes.io/cinder", driver: "cinder.csi.openstack.org", gate: "CSIMigrationOpenStack" },
  { plugin: "kubernetes.io/azure-disk", driver: "disk.csi.azure.com", gate: "CSIMigrationAzureDisk" },
  { plugin: "kubernetes.io/azure-file", driver: "file.csi.azure.com", gate: "CSIMigrationAzureFile" },
  { plugin: "kubernetes.io/vsphere-volume", driver: "csi.vsphere.vmware.com", gate: "CSIMigrationvSphere" },
  { plugin: "kubernetes.io/portworx-volume", driver: "pxd.portworx.com", gate: "CSIMigrationPortworx" },
  { plugin: "kubernetes.io/rbd", driver: "rbd.csi.ceph.com", gate: "csiMigrationRBD" },
];

/** @returns the CSI driver that does the work of an in-tree plugin; undefined when none does */
export function driverOf(plugin: string, gates: { enabled(name: string): boolean }): string | undefined {
  const migrated = migratedPlugins.find((row) => row.plugin === plugin);
  return migrated !== undefined && gates.enabled("CSIMigration") && gates.enabled(migrated.gate) ? migrated.driver : undefined;
}
