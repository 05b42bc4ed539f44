import assert from "node:assert/strict";
import { test } from "node:test";
import type { PersistentVolume, PersistentVolumeSpec } from "../schema/kinds/core/v1.ts";
import { translated } from "./csi-translation.ts";
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
    source: { azureDisk: { diskName: "d", diskURI: "/subscriptions/s/d", cachingMode: "None" } },
    driver: "disk.csi.azure.com",
    handle: "/subscriptions/s/d",
    attributes: { cachingMode: "None", kind: "Managed" },
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
