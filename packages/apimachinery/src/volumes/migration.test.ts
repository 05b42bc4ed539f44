import assert from "node:assert/strict";
import { test } from "node:test";
import { gates } from "../flags/gates.ts";
import type { VolumeSource } from "../objects/schema/kinds/core/v1.ts";
import type { CSINode } from "../objects/schema/kinds/storage/v1.ts";
import {
  driverOf,
  isMigrated,
  isMigratedOnNode,
  migratedPluginOf,
  migratedPlugins,
  migratedPluginsAnnotation,
} from "./migration.ts";

const having = (...on: string[]) => ({ enabled: (name: string) => on.includes(name) });

for (const [plugin, driver, gate, source] of [
  ["kubernetes.io/aws-ebs", "ebs.csi.aws.com", "CSIMigrationAWS", { awsElasticBlockStore: { volumeID: "v" } }],
  ["kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "CSIMigrationGCE", { gcePersistentDisk: { pdName: "d" } }],
  ["kubernetes.io/cinder", "cinder.csi.openstack.org", "CSIMigrationOpenStack", { cinder: { volumeID: "v" } }],
  ["kubernetes.io/azure-disk", "disk.csi.azure.com", "CSIMigrationAzureDisk", { azureDisk: { diskName: "d", diskURI: "u" } }],
  ["kubernetes.io/azure-file", "file.csi.azure.com", "CSIMigrationAzureFile", { azureFile: { secretName: "s", shareName: "f" } }],
  ["kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com", "CSIMigrationvSphere", { vsphereVolume: { volumePath: "p" } }],
  ["kubernetes.io/portworx-volume", "pxd.portworx.com", "CSIMigrationPortworx", { portworxVolume: { volumeID: "v" } }],
  ["kubernetes.io/rbd", "rbd.csi.ceph.com", "csiMigrationRBD", { rbd: { monitors: ["m"], image: "i" } }],
] as [string, string, string, VolumeSource][]) {
  test(`volumes of ${plugin} are those of ${driver} when ${gate} and CSIMigration are on`, () => {
    assert.ok(Object.hasOwn(gates, gate));
    for (const [on, want] of [
      [having("CSIMigration", gate), true],
      [having("CSIMigration"), false],
      [having(gate), false],
    ] as const) {
      assert.equal(driverOf(plugin, on), want ? driver : undefined);
      assert.equal(migratedPluginOf(source, on)?.plugin, want ? plugin : undefined);
    }
  });
}

test("eight plugins can be migrated, no others", () => {
  const all = { enabled: () => true };
  assert.equal(migratedPlugins.length, 8);
  assert.ok(migratedPlugins.every((plugin) => isMigrated(plugin, all)));
  assert.equal(driverOf("kubernetes.io/nfs", all), undefined);
  assert.equal(migratedPluginOf({ nfs: { server: "s", path: "/" } }, all), undefined);
});

test("a node tells the plugins that are migrated on it in an annotation", () => {
  const node = (plugins?: string): CSINode => ({
    metadata: { annotations: plugins === undefined ? {} : { [migratedPluginsAnnotation]: plugins } },
    spec: { drivers: [] },
  });
  assert.equal(migratedPluginsAnnotation, "storage.alpha.kubernetes.io/migrated-plugins");
  for (const [of, want] of [
    [node("kubernetes.io/rbd,kubernetes.io/cinder"), true],
    [node("kubernetes.io/cinder"), true],
    [node("kubernetes.io/cinder2"), false],
    [node(""), false],
    [node(), false],
    [{ metadata: {}, spec: { drivers: [] } }, false],
    [undefined, false],
  ] as [CSINode | undefined, boolean][]) {
    assert.equal(isMigratedOnNode("kubernetes.io/cinder", of), want);
  }
});
