import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { csiNodes, nodes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { CSINode } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import { csiBench, driverName } from "../../testing/csi-bench.ts";
import { CsiClient } from "./csi-client.ts";
import { newCsiDrivers } from "./csi-drivers.ts";

test("a registered driver is in the CSINode and the node's annotations until its socket is removed", async (t) => {
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
    name: "a newer version only",
    versions: ["2.0.0"],
    want: 'None of the versions specified ["2.0.0"] are supported. err=could not find a highest supported version from versions ([2.0.0]) reported by this driver: <nil>',
  },
  {
    name: "an old version",
    versions: ["0.3.0"],
    want: 'None of the versions specified ["0.3.0"] are supported. err=highest supported version reported by driver is 0.3.0, must be v1.x',
  },
]) {
  test(`a driver with ${name} is notified of its refusal`, async (t) => {
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

test("a driver is replaced only by one of a higher version, and a failed announcement leaves no registration", async (t) => {
  const { dir } = await csiBench(t);
  const socket = join(dir, "driver/csi.sock");
  const did: string[] = [];
  let problem: Error | undefined;
  const drivers = newCsiDrivers({
    announcer: {
      async install(driver) {
        did.push(`install ${driver}`);
        if (problem !== undefined) throw problem;
      },
      async uninstall(driver) {
        did.push(`uninstall ${driver}`);
        if (problem !== undefined) throw new Error("this failure follows from the first one");
      },
    },
  });
  t.after(async () => drivers.close());
  await drivers.register("d", socket, ["0.3.0", "1.2.0", "2.0.0", "1.0.0"]);
  const first = drivers.client("d");
  for (const versions of [["1.2.0"], ["1.1.9"], ["1.2"]])
    await assert.rejects(async () => drivers.register("d", socket, versions), /already registered with a higher .*"1\.2\.0"/);
  assert.equal(drivers.client("d"), first);
  await drivers.register("d", socket, ["v1.10.0"]);
  assert.notEqual(drivers.client("d"), first);
  await assert.rejects(first.info(), "the connection to the one before is closed");
  assert.throws(() => drivers.validate("d", socket, ["1.9.0"]), /"1\.10\.0"/);
  await drivers.validate("d", socket, ["1.10.0.1"]);
  problem = new Error("no CSINode");
  await assert.rejects(async () => drivers.register("d", socket, ["1.11.0"]), problem);
  assert.deepEqual([drivers.has("d"), did.slice(-2)], [false, ["install d", "uninstall d"]]);
  problem = undefined;
  await drivers.register("d", socket, ["1.0.0"]);
  assert.ok(drivers.has("d"), "the version of a driver that is gone does not count");
  await drivers.deregister("d");
  assert.throws(() => drivers.client("d"), /^Error: driver name d not found in the list of registered CSI drivers$/);
  const clients = [];
  for (const name of ["d", "e"]) {
    await drivers.register(name, socket, ["1.0.0"]);
    clients.push(drivers.client(name));
  }
  drivers.close();
  for (const client of clients) await assert.rejects(client.info(), "the agent has closed all connections");
});

test("each call to a driver is counted with its code", async (t) => {
  const { dir, driver } = await csiBench(t);
  const codes: string[] = [];
  const client = new CsiClient("d", join(dir, "driver/csi.sock"), (_, method, code) => codes.push(`${method} ${code}`));
  t.after(async () => client.close());
  await client.info();
  driver.failures.set("NodeUnstageVolume", [{ code: 13, details: "busy" }]);
  await assert.rejects(client.unstage("handle-1", "/nowhere"), /code = Internal desc = busy/);
  assert.deepEqual(
    codes,
    ["csi.v1.Node/NodeGetInfo OK", "csi.v1.Node/NodeUnstageVolume Internal"].map((text) => `/${text}`),
  );
});
