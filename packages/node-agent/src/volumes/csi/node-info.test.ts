import assert from "node:assert/strict";
import { test } from "node:test";
import { conflict } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { csiNodes, nodes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { CSINode } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { CsiNodeInfo } from "./node-info.ts";

const idsOf = "csi.volume.kubernetes.io/nodeid";
const migratedOf = "storage.alpha.kubernetes.io/migrated-plugins";

function announcing(metadata: Partial<Node["metadata"]> | undefined = {}) {
  const clock = newFakeClock();
  const client = newFakeClient({ clock });
  const node = { apiVersion: "v1", kind: "Node", metadata: { name: "n1", uid: "node-uid", ...metadata }, spec: {}, status: {} };
  if (metadata !== undefined) client.put(nodes, node);
  let changes = 0;
  const info = new CsiNodeInfo({
    client,
    nodeName: "n1",
    migratedPlugins: ["kubernetes.io/gce-pd", "kubernetes.io/aws-ebs"],
    clock,
    log: discardLogger,
    onChange: () => void changes++,
  });
  const drivers = () => client.object<CSINode>(csiNodes, "n1")?.spec.drivers;
  const ids = () => client.object<Node>(nodes, "n1")?.metadata.annotations?.[idsOf];
  return { clock, client, info, drivers, ids, node, changes: () => changes };
}

const driver = (nodeId: string, topology: Record<string, string> = {}, maxVolumes = 0) => ({ nodeId, maxVolumes, topology });

test("two drivers are each listed once with their current data; removing one keeps the other", async () => {
  const { client, info, drivers, ids } = announcing();
  await info.install("b.example", driver("b1", { zone: "x", rack: "7" }));
  const [patch] = client.writes.filter(({ resource }) => resource === "nodes");
  assert.partialDeepStrictEqual(patch?.sent, { metadata: { labels: { zone: "x", rack: "7" } } });
  await info.install("a.example", driver("a1", {}, 2 ** 40));
  const a = { name: "a.example", nodeID: "a1", topologyKeys: [], allocatable: { count: 2_147_483_647 } };
  assert.deepEqual(drivers(), [{ name: "b.example", nodeID: "b1", topologyKeys: ["rack", "zone"] }, a]);
  assert.equal(ids(), '{"a.example":"a1","b.example":"b1"}');
  client.clearActions();
  await info.install("a.example", driver("a1", {}, 2 ** 40));
  assert.deepEqual(client.writes, [], "it was reported before");
  await info.install("b.example", driver("b2", { zone: "x" }));
  assert.deepEqual([ids(), drivers()?.length], ['{"a.example":"a1","b.example":"b2"}', 2]);
  await info.uninstall("b.example");
  assert.deepEqual([drivers(), ids()], [[a], '{"a.example":"a1"}']);
  client.clearActions();
  await info.uninstall("b.example");
  assert.deepEqual(client.writes, []);
  await info.uninstall("a.example");
  assert.deepEqual([drivers() ?? [], ids()], [[], undefined]);
});

for (const { name, metadata, info: given = driver("i"), want } of [
  {
    name: "whose second place contradicts a label",
    metadata: { labels: { zone: "x", rack: "7" } },
    info: driver("i", { zone: "x", rack: "8" }),
    want: /detected topology value collision: driver reported "rack":"8" but existing label is "rack":"7"/,
  },
  { name: "without an ID of the node", metadata: {}, info: driver(""), want: /driverNodeID must not be empty$/ },
  {
    name: "of a node whose IDs cannot be read",
    metadata: { annotations: { [idsOf]: "{" } },
    want: /failed to parse node's "csi.volume.kubernetes.io\/nodeid" annotation value \("\{"\)/,
  },
]) {
  test(`a driver ${name} is refused and not written to the CSINode`, async () => {
    const { clock, client, info, drivers } = announcing(metadata);
    const refused = assert.rejects(info.install("d.example", given), want);
    for (let i = 0; i < 3; i++) await clock.advance(250);
    await refused;
    assert.deepEqual([client.writes, drivers() ?? []], [[], []]);
  });
}

test("drivers that come and go at the same time are all written to the node, whatever each of them has read", async () => {
  const { clock, info, drivers, ids } = announcing();
  await info.install("old.example", driver("o"));
  const all = Promise.all([
    info.install("a.example", driver("a")),
    info.install("b.example", driver("b")),
    info.uninstall("old.example"),
  ]);
  for (let attempt = 0; attempt < 5; attempt++) await clock.advance(1_000); // after a conflict
  await all;
  assert.deepEqual(
    drivers()
      ?.map(({ name }) => name)
      .toSorted(),
    ["a.example", "b.example"],
  );
  assert.deepEqual(JSON.parse(ids() ?? ""), { "a.example": "a", "b.example": "b" });
});

test("the initialization of CSINode is tried again after 0.1 s, twice as long each time, at most 5 s", async () => {
  const { clock, client, info } = announcing();
  client.react("get", "csinodes", () => {
    throw new Error("the server is away");
  });
  const stop = new AbortController();
  const initialized = info.initialize(stop.signal);
  const waits: number[] = [];
  for (let i = 0; i < 8; i++) {
    await settle();
    const waitMs = (clock.nextDue ?? Number.NaN) - clock.now();
    waits.push(waitMs);
    await clock.advance(waitMs);
  }
  assert.deepEqual(waits, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
  stop.abort();
  await initialized;
});

test("a conflicting write is retried on the current object, at most four times", async () => {
  const { clock, client, info, drivers } = announcing();
  await info.install("a.example", driver("a1"));
  let failures = 2;
  client.react("update", "csinodes", () => {
    if (failures-- > 0) throw conflict(csiNodes, "n1", `changed ${failures}`);
    return undefined;
  });
  const installed = info.install("b.example", driver("b1"));
  await settle();
  await clock.advance(10);
  await clock.advance(50);
  await installed;
  assert.deepEqual(
    drivers()?.map(({ name }) => name),
    ["a.example", "b.example"],
  );
  failures = 4;
  const failed = assert.rejects(
    info.uninstall("b.example"),
    /timed out waiting for the condition; caused by: \[.*changed 3.*changed 0/,
  );
  await settle();
  for (const waitMs of [10, 50, 250]) await clock.advance(waitMs);
  await failed;
  client.react("update", "csinodes", () => {
    throw new Error("no");
  });
  const alike = assert.rejects(info.uninstall("b.example"), /timed out waiting for the condition; caused by: no$/);
  await settle();
  for (const waitMs of [10, 50, 250]) await clock.advance(waitMs);
  await alike;
  assert.deepEqual([clock.waiting, drivers()?.length], [0, 2]);
});

test("the node waits for its CSINode, reports the error, and corrects the list of migrated plugins", async () => {
  const { clock, client, info, node, changes } = announcing();
  client.remove(nodes, "n1");
  const stop = new AbortController();
  const initialized = info.initialize(stop.signal);
  await settle();
  assert.deepEqual([info.problem(), changes()], ["CSINode is not yet initialized", 0], "there is no node yet");
  client.put(nodes, node);
  let away = true;
  client.react("create", "csinodes", () => {
    if (away) throw new Error("away");
    return undefined;
  });
  await clock.advance(100);
  await clock.advance(200);
  assert.deepEqual([info.problem(), changes()], ["Failed to initialize CSINode: away", 1], "the same again is no news");
  away = false;
  await clock.advance(400);
  await initialized;
  assert.deepEqual([info.problem(), changes()], [undefined, 2]);
  const made = client.object<CSINode>(csiNodes, "n1") as CSINode;
  const plugins = "kubernetes.io/aws-ebs,kubernetes.io/gce-pd";
  assert.deepEqual(made.metadata.annotations, { [migratedOf]: plugins });
  client.clearActions();
  await info.initialize(stop.signal);
  assert.deepEqual(client.writes, []);
  client.put(csiNodes, {
    ...made,
    metadata: { ...made.metadata, annotations: { mine: "1", [migratedOf]: "kubernetes.io/rbd" } },
  });
  await info.initialize(stop.signal);
  assert.deepEqual(client.object<CSINode>(csiNodes, "n1")?.metadata.annotations, { mine: "1", [migratedOf]: plugins });
});

for (const { what, verb, resource, run, want } of [
  {
    what: "cannot be written to the CSINode",
    verb: "create",
    resource: "csinodes",
    run: (info: CsiNodeInfo) => info.install("d.example", driver("i")),
    want: "error updating CSINode object with CSI driver node info: error updating CSINode",
  },
  {
    what: "cannot be written to the node",
    verb: "patch",
    resource: "nodes",
    run: (info: CsiNodeInfo) => info.install("d.example", driver("i")),
    want: "error updating Node object with CSI driver node info: error updating node",
  },
  {
    what: "cannot be removed from the CSINode",
    verb: "update",
    resource: "csinodes",
    run: (info: CsiNodeInfo) => info.uninstall("old.example"),
    want: "error uninstalling CSI driver from CSINode object error updating CSINode",
  },
  {
    what: "cannot be removed from the node",
    verb: "patch",
    resource: "nodes",
    run: (info: CsiNodeInfo) => info.uninstall("old.example"),
    want: "error removing CSI driver node info from Node object error updating node",
  },
] as const) {
  test(`a driver that ${what} is reported with all failures`, async () => {
    const { clock, client, info } = announcing();
    if (verb !== "create") await info.install("old.example", driver("o"));
    client.react(verb, resource, () => {
      throw new Error("away");
    });
    const failed = assert.rejects(run(info), {
      message: `${want}: timed out waiting for the condition; caused by: away`,
    });
    for (let i = 0; i < 5; i++) await clock.advance(250);
    await failed;
  });
}

test("a known driver's second place becomes a label though the first is one already", async () => {
  const { client, info } = announcing({ labels: { rack: "7" }, annotations: { [idsOf]: '{"d.example":"i"}' } });
  const places = { rack: "7", zone: "x" };
  await info.install("d.example", driver("i", places));
  const [patch] = client.writes.filter(({ resource }) => resource === "nodes");
  assert.partialDeepStrictEqual(patch?.sent, { metadata: { labels: places } });
});
