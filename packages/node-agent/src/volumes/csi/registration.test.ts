import assert from "node:assert/strict";
import { test } from "node:test";
import type { Node } from "@coxswain/apimachinery/schema/kinds/core/v1";
import { csiNodes, nodes } from "@coxswain/apimachinery/schema/kinds/resources";
import type { CSINode } from "@coxswain/apimachinery/schema/kinds/storage/v1";
import { csiBench, driverName } from "../../testing/csi-bench.ts";

test("a driver that registers is in the node's CSINode and annotations, and leaves both when its socket goes", async (t) => {
  const { client, csi, driver } = await csiBench(t, { maxVolumes: 12, topology: { "example.com/zone": "a" } });
  const stop = new AbortController();
  await csi.start(stop.signal);
  assert.equal(csi.problem(), undefined);
  assert.deepEqual(driver.verdicts, [{ pluginRegistered: true, error: "" }]);
  const csiNode = client.object<CSINode>(csiNodes, "n1");
  const id = "disk.example.com-node";
  assert.deepEqual(csiNode?.spec.drivers, [
    { name: driverName, nodeID: id, topologyKeys: ["example.com/zone"], allocatable: { count: 12 } },
  ]);
  assert.deepEqual(csiNode?.metadata.ownerReferences, [{ apiVersion: "v1", kind: "Node", name: "n1", uid: "node-uid" }]);
  const { metadata } = client.object<Node>(nodes, "n1") as Node;
  assert.equal(metadata.annotations?.["csi.volume.kubernetes.io/nodeid"], `{"${driverName}":"${id}"}`);
  assert.deepEqual(client.writes.find(({ resource, subresource }) => resource === "nodes" && subresource === "status")?.sent, {
    metadata: {
      annotations: { "csi.volume.kubernetes.io/nodeid": `{"${driverName}":"${id}"}` },
      labels: { "example.com/zone": "a" },
    },
  });

  await csi.handler.deregister(driverName);
  assert.deepEqual(client.object<CSINode>(csiNodes, "n1")?.spec.drivers ?? [], []);
  const after = (client.object<Node>(nodes, "n1") as Node).metadata.annotations ?? {};
  assert.equal(after["csi.volume.kubernetes.io/nodeid"], undefined);
});

for (const { name, versions, want } of [
  { name: "no version", versions: [], want: "Plugin returned an empty list for supported versions" },
  {
    name: "an old version",
    versions: ["0.3.0"],
    want: 'None of the versions specified ["0.3.0"] are supported. err=highest supported version reported by driver is 0.3.0, must be v1.x',
  },
]) {
  test(`a driver with ${name} is told that it is refused`, async (t) => {
    const { driver } = await csiBench(t, { versions });
    assert.deepEqual(driver.verdicts[0]?.pluginRegistered, false);
    assert.ok(
      driver.verdicts[0]?.error.endsWith(`kubernetes.io/csi: ValidatePlugin for CSI driver "${driverName}" failed. ${want}`),
    );
  });
}

test("the node is not ready before its CSINode is there", async (t) => {
  const { csi, client } = await csiBench(t);
  assert.equal(csi.problem(), "CSINode is not yet initialized");
  await csi.start(new AbortController().signal);
  assert.equal(csi.problem(), undefined);
  const migrated = client.object<CSINode>(csiNodes, "n1")?.metadata.annotations?.["storage.alpha.kubernetes.io/migrated-plugins"];
  assert.match(migrated ?? "", /kubernetes\.io\/gce-pd/);
});
