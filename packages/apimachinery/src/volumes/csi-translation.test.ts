import assert from "node:assert/strict";
import { test } from "node:test";
import type { PersistentVolume, PersistentVolumeSpec, Volume } from "../objects/schema/kinds/core/v1.ts";
import { translated, translatedInline } from "./csi-translation.ts";
import { driverOf, migratedPluginOf } from "./migration.ts";

const on = { enabled: () => true };

for (const { name, source, labels = {}, driver, handle, attributes } of [
  {
    name: "an EBS disk with its zone",
    source: { awsElasticBlockStore: { volumeID: "aws://us-east-1a/vol-1", fsType: "ext4", partition: 2 } },
    driver: "ebs.csi.aws.com",
    handle: "vol-1",
    attributes: { partition: "2" },
  },
  {
    name: "an EBS disk without its zone",
    source: { awsElasticBlockStore: { volumeID: "vol-1" } },
    driver: "ebs.csi.aws.com",
    handle: "vol-1",
    attributes: { partition: "0" },
  },
  {
    name: "a GCE disk of one zone",
    source: { gcePersistentDisk: { pdName: "d" } },
    labels: { "topology.kubernetes.io/zone": "europe-west1-b" },
    driver: "pd.csi.storage.gke.io",
    handle: "projects/UNSPECIFIED/zones/europe-west1-b/disks/d",
    attributes: { partition: "" },
  },
  {
    name: "a partition of a GCE disk without a zone",
    source: { gcePersistentDisk: { pdName: "d", partition: 3 } },
    driver: "pd.csi.storage.gke.io",
    handle: "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d",
    attributes: { partition: "3" },
  },
  {
    name: "a GCE disk with zones of now and before",
    source: { gcePersistentDisk: { pdName: "d", partition: 0 } },
    labels: { "failure-domain.beta.kubernetes.io/zone": "b", "topology.kubernetes.io/zone": "a" },
    driver: "pd.csi.storage.gke.io",
    handle: "projects/UNSPECIFIED/zones/a/disks/d",
    attributes: { partition: "" },
  },
  {
    name: "a GCE disk of two zones",
    source: { gcePersistentDisk: { pdName: "d" } },
    labels: { "failure-domain.beta.kubernetes.io/zone": "europe-west1-b__europe-west1-c" },
    driver: "pd.csi.storage.gke.io",
    handle: "projects/UNSPECIFIED/regions/europe-west1/disks/d",
    attributes: { partition: "" },
  },
  { name: "a Cinder disk", source: { cinder: { volumeID: "c" } }, driver: "cinder.csi.openstack.org", handle: "c" },
  {
    name: "an Azure disk",
    source: { azureDisk: { diskName: "d", diskURI: "/subscriptions/s/d", cachingMode: "None", fsType: "xfs" } },
    driver: "disk.csi.azure.com",
    handle: "/subscriptions/s/d",
    attributes: { cachingMode: "None", fsType: "xfs", kind: "Managed" },
  },
] as {
  name: string;
  source: Partial<PersistentVolumeSpec>;
  labels?: Record<string, string>;
  driver: string;
  handle: string;
  attributes?: Record<string, string>;
}[]) {
  test(`translates ${name}`, () => {
    const volume: PersistentVolume = { metadata: { name: "pv", labels }, spec: { capacity: { storage: "1Gi" }, ...source } };
    const plugin = migratedPluginOf(volume.spec, on)?.plugin ?? "";
    const { csi, capacity, ...rest } = translated(volume, plugin)?.spec ?? {};
    assert.deepEqual([csi?.driver, csi?.volumeHandle, csi?.volumeAttributes], [driver, handle, attributes]);
    assert.deepEqual([capacity, rest], [{ storage: "1Gi" }, {}]);
  });
}

test("a driver takes over only when both gates are on", () => {
  const off = (gate: string) => ({ enabled: (name: string) => name !== gate });
  assert.equal(driverOf("kubernetes.io/cinder", on), "cinder.csi.openstack.org");
  assert.equal(driverOf("kubernetes.io/cinder", off("CSIMigration")), undefined);
  assert.equal(driverOf("kubernetes.io/cinder", off("CSIMigrationOpenStack")), undefined);
  assert.equal(driverOf("kubernetes.io/nfs", on), undefined);
});

const monitors = ["10.0.0.1:6789", "10.0.0.2:6789"];
const cluster = "7302cda58640a2caf560f9ff34394c6d";
const image = "kubernetes-dynamic-pvc-e0b45b52";
const secret = { name: "ceph", namespace: "vault" };

for (const { name, source, annotations = {}, accessModes = ["ReadOnlyMany"], csi } of [
  {
    name: "an Azure share whose account its secret names",
    source: { azureFile: { secretName: "azure-storage-account-acc-secret", shareName: "s", readOnly: true } },
    annotations: { "kubernetes.io/azure-file-resource-group": "rg" },
    csi: {
      driver: "file.csi.azure.com",
      volumeHandle: "rg#acc#s#",
      readOnly: true,
      volumeAttributes: { sharename: "s" },
      nodeStageSecretRef: { name: "azure-storage-account-acc-secret", namespace: "default" },
    },
  },
  {
    name: "an Azure share with a secret of another name elsewhere",
    source: { azureFile: { secretName: "-secret", shareName: "s", secretNamespace: "vault" } },
    csi: {
      driver: "file.csi.azure.com",
      volumeHandle: "#-secret#s#",
      volumeAttributes: { sharename: "s" },
      nodeStageSecretRef: { name: "-secret", namespace: "vault" },
    },
  },
  {
    name: "an Azure share with a secret whose name has no end",
    source: { azureFile: { secretName: "azure-storage-account-acc", shareName: "s" } },
    csi: {
      driver: "file.csi.azure.com",
      volumeHandle: "#azure-storage-account-acc#s#",
      volumeAttributes: { sharename: "s" },
      nodeStageSecretRef: { name: "azure-storage-account-acc", namespace: "default" },
    },
  },
  {
    name: "a disk of vSphere",
    source: { vsphereVolume: { volumePath: "[store] a/b.vmdk", fsType: "ext4", storagePolicyName: "gold" } },
    csi: {
      driver: "csi.vsphere.vmware.com",
      volumeHandle: "[store] a/b.vmdk",
      fsType: "ext4",
      volumeAttributes: { storagepolicyname: "gold" },
    },
  },
  {
    name: "a disk of vSphere without a policy",
    source: { vsphereVolume: { volumePath: "p", storagePolicyName: "" } },
    csi: { driver: "csi.vsphere.vmware.com", volumeHandle: "p" },
  },
  {
    name: "a volume of Portworx",
    source: { portworxVolume: { volumeID: "p", fsType: "xfs", readOnly: true } },
    csi: { driver: "pxd.portworx.com", volumeHandle: "p", fsType: "xfs" },
  },
  {
    name: "an image of Ceph",
    source: { rbd: { monitors, image, pool: "replicapool", fsType: "ext4", secretRef: secret } },
    accessModes: ["ReadWriteOnce"],
    csi: {
      driver: "rbd.csi.ceph.com",
      volumeHandle: `mig_mons-${cluster}_image-e0b45b52_7265706c696361706f6f6c`,
      fsType: "ext4",
      volumeAttributes: {
        clusterID: cluster,
        staticVolume: "true",
        imageName: image,
        pool: "replicapool",
        imageFeatures: "layering",
        imageFormat: "",
        journalPool: "",
        migration: "true",
        tryOtherMounters: "true",
      },
      nodeStageSecretRef: secret,
      controllerExpandSecretRef: secret,
    },
  },
  {
    name: "an image of Ceph that the driver has made",
    source: { rbd: { monitors, image: "i", pool: "p", readOnly: true } },
    annotations: {
      "rbd.csi.ceph.com/volume-handle": "0001-made",
      clusterID: "c",
      imageFeatures: "layering,fast-diff",
      imageFormat: "2",
      journalPool: "j",
    },
    csi: {
      driver: "rbd.csi.ceph.com",
      volumeHandle: "0001-made",
      volumeAttributes: {
        clusterID: "c",
        imageName: "i",
        pool: "p",
        imageFeatures: "layering,fast-diff",
        imageFormat: "2",
        journalPool: "j",
        migration: "true",
        tryOtherMounters: "true",
      },
    },
  },
] as { name: string; source: object; annotations?: Record<string, string>; accessModes?: string[]; csi: object }[]) {
  test(`translates ${name}`, () => {
    const volume = {
      metadata: { name: "pv", annotations },
      spec: { accessModes: ["ReadOnlyMany"], ...source },
    } as PersistentVolume;
    const plugin = migratedPluginOf(volume.spec, on)?.plugin ?? "";
    assert.deepEqual(translated(volume, plugin), { metadata: volume.metadata, spec: { accessModes, csi } });
  });
}

for (const { source, name, accessMode = "ReadWriteOnce", csi } of [
  {
    source: { awsElasticBlockStore: { volumeID: "aws://z/vol-1" } },
    name: "ebs.csi.aws.com-vol-1",
    csi: { driver: "ebs.csi.aws.com", volumeHandle: "vol-1", volumeAttributes: { partition: "0" } },
  },
  {
    source: { azureFile: { secretName: "azure-storage-account-acc-secret", shareName: "s" } },
    name: "file.csi.azure.com-#acc#s#",
    accessMode: "ReadWriteMany",
    csi: {
      driver: "file.csi.azure.com",
      volumeHandle: "#acc#s#",
      volumeAttributes: { sharename: "s" },
      nodeStageSecretRef: { name: "azure-storage-account-acc-secret", namespace: "web" },
    },
  },
  {
    source: { gcePersistentDisk: { pdName: "d", readOnly: true } },
    name: "pd.csi.storage.gke.io-projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d",
    accessMode: "ReadOnlyMany",
    csi: {
      driver: "pd.csi.storage.gke.io",
      volumeHandle: "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d",
      readOnly: true,
      volumeAttributes: { partition: "" },
    },
  },
  {
    source: { portworxVolume: { volumeID: "p", readOnly: true } },
    name: "pxd.portworx.com-p",
    accessMode: "ReadOnlyMany",
    csi: { driver: "pxd.portworx.com", volumeHandle: "p" },
  },
  {
    source: { rbd: { monitors, image, pool: "", secretRef: { name: "ceph" } } },
    name: `rbd.csi.ceph.com-${image}`,
    csi: {
      driver: "rbd.csi.ceph.com",
      volumeHandle: image,
      volumeAttributes: { clusterID: cluster, pool: "rbd", staticVolume: "true", imageFeatures: "layering" },
      nodeStageSecretRef: { name: "ceph", namespace: "web" },
      controllerExpandSecretRef: { name: "ceph", namespace: "web" },
    },
  },
] as { source: object; name: string; accessMode?: string; csi: object }[]) {
  test(`translates a pod's own ${Object.keys(source)[0]}, whose secrets are in the pod's namespace`, () => {
    const volume = { name: "data", ...source } as Volume;
    const plugin = migratedPluginOf(volume as PersistentVolumeSpec, on)?.plugin ?? "";
    const made = translatedInline(volume, plugin, "web");
    assert.deepEqual(made, { metadata: { name }, spec: { accessModes: [accessMode], csi } });
  });
}

for (const { modes, want } of [
  { modes: ["ReadWriteMany"], want: ["ReadWriteOnce"] },
  { modes: ["ReadOnlyMany", "ReadWriteOnce"], want: ["ReadWriteOnce"] },
  { modes: ["ReadOnlyMany"], want: ["ReadOnlyMany"] },
  { modes: undefined, want: undefined },
]) {
  test(`a GCE disk of mode ${modes} has ${want} with its driver`, () => {
    const spec = { gcePersistentDisk: { pdName: "d" }, ...(modes && { accessModes: modes }) } as PersistentVolumeSpec;
    const made = translated({ metadata: { name: "pv" }, spec }, "kubernetes.io/gce-pd");
    assert.deepEqual(made?.spec.accessModes, want);
  });
}
