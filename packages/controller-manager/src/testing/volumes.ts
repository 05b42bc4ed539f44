import type {
  PersistentVolume,
  PersistentVolumeClaim,
  PersistentVolumeClaimSpec,
  PersistentVolumeSpec,
} from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import type { StorageClass } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";

/** The claim `default/data` of 1Gi in phase Pending. */
export function aClaim(
  spec: Partial<PersistentVolumeClaimSpec> = {},
  annotations?: Record<string, string>,
): PersistentVolumeClaim {
  return {
    apiVersion: "v1",
    kind: "PersistentVolumeClaim",
    metadata: { namespace: "default", name: "data", uid: "data-uid", ...(annotations && { annotations }) },
    spec: {
      accessModes: ["ReadWriteOnce"],
      resources: { requests: { storage: "1Gi" } },
      volumeMode: "Filesystem",
      ...spec,
    },
    status: { phase: "Pending" },
  };
}

/** An Available hostPath volume of 1Gi with policy Retain. */
export function aVolume(
  name: string,
  spec: Partial<PersistentVolumeSpec> = {},
  annotations?: Record<string, string>,
): PersistentVolume {
  return {
    apiVersion: "v1",
    kind: "PersistentVolume",
    metadata: { name, uid: `${name}-uid`, ...(annotations && { annotations }) },
    spec: {
      capacity: { storage: "1Gi" },
      accessModes: ["ReadWriteOnce"],
      persistentVolumeReclaimPolicy: "Retain",
      volumeMode: "Filesystem",
      hostPath: { path: `/tmp/${name}` },
      ...spec,
    },
    status: { phase: "Available" },
  };
}

export function aStorageClass(name: string, rest: Partial<StorageClass> = {}): StorageClass {
  return {
    apiVersion: "storage.k8s.io/v1",
    kind: "StorageClass",
    metadata: { name, uid: `${name}-uid` },
    provisioner: "disks.example.com",
    reclaimPolicy: "Delete",
    volumeBindingMode: "Immediate",
    ...rest,
  };
}
