import type { PersistentVolume, Volume } from "@coxswain/apimachinery/schema/kinds/core/v1";
import type { CSINode } from "@coxswain/apimachinery/schema/kinds/storage/v1";
import type { PluginContext } from "../framework/plugin-context.ts";

/** A kind of disk that Kubernetes once attached itself and that a CSI driver may have taken over. */
export interface InTreeDisk {
  /** As provisioner: `kubernetes.io/aws-ebs`. */
  readonly plugin: string;
  readonly driver: string;
  readonly gate: string;
  /** The disk behind a pod's volume, or a persistent one. */
  readonly idOf: (source: Pick<Volume & PersistentVolume["spec"], DiskField>) => string | undefined;
}
type DiskField = "awsElasticBlockStore" | "gcePersistentDisk" | "azureDisk" | "cinder" | "portworxVolume" | "rbd";

/** Source: k8s.io/csi-translation-lib plugins; features of the same names */
export const inTreeDisks = {
  EBS: {
    plugin: "kubernetes.io/aws-ebs",
    driver: "ebs.csi.aws.com",
    gate: "CSIMigrationAWS",
    idOf: ({ awsElasticBlockStore }) => awsElasticBlockStore?.volumeID,
  },
  GCE: {
    plugin: "kubernetes.io/gce-pd",
    driver: "pd.csi.storage.gke.io",
    gate: "CSIMigrationGCE",
    idOf: ({ gcePersistentDisk }) => gcePersistentDisk?.pdName,
  },
  AzureDisk: {
    plugin: "kubernetes.io/azure-disk",
    driver: "disk.csi.azure.com",
    gate: "CSIMigrationAzureDisk",
    idOf: ({ azureDisk }) => azureDisk?.diskName,
  },
  Cinder: {
    plugin: "kubernetes.io/cinder",
    driver: "cinder.csi.openstack.org",
    gate: "CSIMigrationOpenStack",
    idOf: ({ cinder }) => cinder?.volumeID,
  },
  Portworx: {
    plugin: "kubernetes.io/portworx-volume",
    driver: "pxd.portworx.com",
    gate: "CSIMigrationPortworx",
    idOf: ({ portworxVolume }) => portworxVolume?.volumeID,
  },
  RBD: {
    plugin: "kubernetes.io/rbd",
    driver: "rbd.csi.ceph.com",
    gate: "csiMigrationRBD",
    idOf: ({ rbd }) => rbd?.image,
  },
} as const satisfies Record<string, InTreeDisk>;

export function isMigrated({ plugin, gate }: InTreeDisk, node: CSINode | undefined, gates: PluginContext["gates"]): boolean {
  return gates.enabled("CSIMigration") && gates.enabled(gate) && isOnNode(plugin, node);
}

/** The node's agent says for itself which plugins have moved to CSI there. */
export function isOnNode(plugin: string, node: CSINode | undefined): boolean {
  const migrated = node?.metadata.annotations?.["storage.alpha.kubernetes.io/migrated-plugins"] ?? "";
  return migrated.split(",").includes(plugin);
}
