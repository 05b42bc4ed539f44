import assert from "node:assert/strict";
import { test } from "node:test";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { alreadyExists, notFound, serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Node, PersistentVolumeSpec, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import {
  csiDrivers,
  csiNodes,
  nodes,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
  volumeAttachments,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { VolumeAttachment } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { aNode, aPod } from "@coxswain/apimachinery/testing/builders";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { attachmentName, volumeId } from "@coxswain/apimachinery/volumes/volume-id";
import { queueMetrics } from "@coxswain/apimachinery/workqueue/metrics";
import { defaultConfig, newTestContext, type TestContext } from "../../testing/test-context.ts";
import { aClaim, aVolume } from "../../testing/volumes.ts";
import { newAttachDetachController } from "./controller.ts";

const driver = "disks.example.com";
const id = volumeId(driver, "disk-1");
const managed = { "volumes.kubernetes.io/controller-managed-attach-detach": "true" };
const claimRef = { namespace: "default", name: "data", uid: "data-uid" };

const aManagedNode = (name: string): Node => aNode({ name, annotations: managed });
const user = (name: string, node: string): Pod =>
  aPod({ name, nodeName: node, spec: { volumes: [{ name: "v", persistentVolumeClaim: { claimName: "data" } }] } });

/** Puts the nodes a and b, and a volume bound to `default/data`. */
function withDisk(context: TestContext, spec: Partial<PersistentVolumeSpec> = {}): void {
  const source = { hostPath: undefined, csi: { driver, volumeHandle: "disk-1" } } as unknown as Partial<PersistentVolumeSpec>;
  context.client.put(nodes, aManagedNode("a"), aManagedNode("b"));
  context.client.put(persistentVolumes, aVolume("pv-1", { ...source, claimRef, ...spec }));
  const claim = aClaim({ volumeName: "pv-1" });
  context.client.put(persistentVolumeClaims, { ...claim, status: { phase: "Bound" } });
}

const attachmentOf = ({ client }: TestContext, node: string, of = id) =>
  client.object<VolumeAttachment>(volumeAttachments, attachmentName(of, node));

/** Sets the status of the VolumeAttachment, as the external attacher does. */
async function answer(context: TestContext, node: string, status: VolumeAttachment["status"]): Promise<void> {
  context.client.put(volumeAttachments, { ...(attachmentOf(context, node) as VolumeAttachment), status });
  await settle(30);
}

const listOn = ({ client }: TestContext, node: string) => client.object<Node>(nodes, node)?.status?.volumesAttached;

async function uses(context: TestContext, node: string, volumesInUse: string[]): Promise<void> {
  const known = context.client.object<Node>(nodes, node) as Node;
  context.client.put(nodes, { ...known, status: { ...known.status, volumesInUse } });
  await settle(30);
}

async function touch({ client }: TestContext, name: string): Promise<void> {
  const pod = client.object<Pod>(pods, `default/${name}`) as Pod;
  client.put(pods, { ...pod, metadata: { ...pod.metadata, labels: { touched: pod.metadata.resourceVersion ?? "" } } });
  await settle(30);
}

/** Starts with Pod web using the volume on node a, attached. */
async function attachedOnA(context: TestContext, spec: Partial<PersistentVolumeSpec> = {}): Promise<void> {
  withDisk(context, spec);
  context.client.put(pods, user("web", "a"));
  await context.run(newAttachDetachController(context.ctx));
  await answer(context, "a", { attached: true });
}

test("has a volume attached where a pod needs it, and then says so to node and pod", async (t) => {
  const context = newTestContext(t);
  withDisk(context);
  context.client.put(pods, user("web", "a"));
  await context.run(newAttachDetachController(context.ctx));
  assert.deepEqual(attachmentOf(context, "a")?.spec, {
    attacher: driver,
    nodeName: "a",
    source: { persistentVolumeName: "pv-1" },
  });
  assert.equal(listOn(context, "a"), undefined, "not before it is there");
  await answer(context, "a", { attached: true });
  assert.deepEqual(listOn(context, "a"), [{ name: id, devicePath: "" }]);
  assert.deepEqual(context.events, ['Normal SuccessfulAttachVolume AttachVolume.Attach succeeded for volume "pv-1" ']);
  const text = await context.ctx.registry.render();
  for (const line of [
    `storage_count_attachable_volumes_in_use{node="a",volume_plugin="kubernetes.io/csi:${driver}"} 1`,
    `attachdetach_controller_total_volumes{plugin_name="kubernetes.io/csi:${driver}",state="actual_state_of_world"} 1`,
    `attachdetach_controller_total_volumes{plugin_name="kubernetes.io/csi:${driver}",state="desired_state_of_world"} 1`,
    `storage_operation_duration_seconds_count{volume_plugin="kubernetes.io/csi:${driver}",operation_name="volume_attach",status="success",migrated="false"} 1`,
  ])
    assert.ok(text.includes(`${line}\n`), line);
  assert.equal(await context.ctx.registry.render(), text, "looking at the numbers does not change them");
  await touch(context, "web");
  assert.equal(context.events.length, 1, "the event is not repeated");
});

test("makes an attachment's name as drivers and node agents do: of handle, driver and node", () => {
  const name = "csi-9072ed11cc1acb5fa433a877ff339b6311d013f33bddd1d0092711a8ace5b16d";
  assert.equal(attachmentName(volumeId("d", "h"), "n"), name);
});

test("takes a volume off its node when no pod needs it and the node is done with it", async (t) => {
  const context = newTestContext(t);
  await attachedOnA(context);
  await uses(context, "a", [id]);
  context.client.remove(pods, "default/web");
  await settle(30);
  assert.ok(attachmentOf(context, "a"), "the node uses it still");
  assert.deepEqual(listOn(context, "a"), [{ name: id, devicePath: "" }]);
  context.client.clearActions();
  await uses(context, "a", []);
  assert.equal(attachmentOf(context, "a"), undefined);
  assert.equal(listOn(context, "a"), undefined);
  assert.deepEqual(
    context.client.actions.map(({ verb, resource, subresource }) => `${verb} ${resource} ${subresource}`.trim()),
    ["patch nodes status", "get nodes", "delete volumeattachments"],
    "first the node's list, then the node itself, then the driver",
  );
});

test("takes it off by force after six minutes", async (t) => {
  const context = newTestContext(t);
  await attachedOnA(context);
  await uses(context, "a", [id]);
  context.client.remove(pods, "default/web");
  await settle(30);
  await context.clock.advance(5 * 60_000);
  assert.ok(attachmentOf(context, "a"));
  await context.clock.advance(61_000);
  assert.equal(attachmentOf(context, "a"), undefined);
  assert.match(await context.ctx.registry.render(), /attachdetach_controller_forced_detaches 1\n/);
});

test("takes it off at once when its node is gone, as soon as the pod is gone too", async (t) => {
  const context = newTestContext(t);
  await attachedOnA(context);
  await uses(context, "a", [id]);
  context.client.remove(nodes, "a");
  await settle(30);
  assert.ok(attachmentOf(context, "a"), "a pod is there still");
  context.client.remove(pods, "default/web");
  await settle(30);
  assert.equal(attachmentOf(context, "a"), undefined);
});

test("does not trust its cache about a node that has begun to use it", async (t) => {
  const context = newTestContext(t);
  await attachedOnA(context);
  const fresh = { ...aManagedNode("a"), status: { volumesInUse: [id] } };
  context.client.react("get", "nodes", () => fresh);
  context.client.remove(pods, "default/web");
  await settle(30);
  assert.ok(attachmentOf(context, "a"));
  assert.deepEqual(listOn(context, "a"), [{ name: id, devicePath: "" }], "it may go on using it");
});

test("leaves a volume where a finished pod had it only if the node asks for that", async (t) => {
  for (const keep of [false, true]) {
    const context = newTestContext(t);
    withDisk(context);
    const annotations = { ...managed, ...(keep && { "volumes.kubernetes.io/keep-terminated-pod-volumes": "true" }) };
    context.client.put(nodes, aNode({ name: "a", annotations }));
    context.client.put(pods, user("web", "a"));
    await context.run(newAttachDetachController(context.ctx));
    await answer(context, "a", { attached: true });
    context.client.put(pods, { ...user("web", "a"), status: { phase: "Succeeded" } });
    await settle(30);
    assert.equal(attachmentOf(context, "a") !== undefined, keep);
  }
});

test("says to pods elsewhere that a volume can be on one node only, and moves it when it is free", async (t) => {
  const context = newTestContext(t);
  await attachedOnA(context);
  context.events.length = 0;
  context.regarding.length = 0;
  context.client.put(pods, user("next", "b"));
  await settle(30);
  assert.equal(attachmentOf(context, "b"), undefined);
  const refusal = 'Warning FailedAttachVolume Multi-Attach error for volume "pv-1" Volume is already used by pod(s) web';
  assert.deepEqual([context.events, context.regarding], [[refusal], ["Pod default/next"]]);
  await touch(context, "next");
  assert.deepEqual(context.events, [refusal], "once");
  context.client.remove(pods, "default/next");
  await settle(30);
  context.client.put(pods, user("next", "b"));
  await settle(30);
  assert.deepEqual(context.events, [refusal, refusal], "to another pod again");
  context.client.remove(pods, "default/web");
  await settle(40);
  assert.equal(attachmentOf(context, "a"), undefined);
  assert.ok(attachmentOf(context, "b"));
});

test("has a volume that may be shared attached to both", async (t) => {
  const context = newTestContext(t);
  await attachedOnA(context, { accessModes: ["ReadWriteOnce", "ReadWriteMany"] });
  context.client.put(pods, user("next", "b"));
  await settle(30);
  assert.ok(attachmentOf(context, "b"));
});

test("reports to pods why a driver could not attach, less and less often", async (t) => {
  const context = newTestContext(t);
  withDisk(context);
  context.client.put(pods, user("web", "a"));
  await context.run(newAttachDetachController(context.ctx));
  await answer(context, "a", { attached: false, attachError: { message: "rpc error: no slot" } });
  const failure = 'Warning FailedAttachVolume AttachVolume.Attach failed for volume "pv-1" : rpc error: no slot';
  assert.deepEqual(context.events, [failure]);
  await touch(context, "web");
  assert.equal(context.events.length, 1, "not before the back-off ends");
  await context.clock.advance(500);
  assert.equal(context.events.length, 2);
  await context.clock.advance(500);
  assert.equal(context.events.length, 2);
  await context.clock.advance(500);
  assert.equal(context.events.length, 3);
  await answer(context, "a", { attached: true });
  assert.match(context.events.at(-1) ?? "", /^Normal SuccessfulAttachVolume/);
});

test("says after two minutes that a driver does not answer", async (t) => {
  const context = newTestContext(t);
  withDisk(context);
  context.client.put(pods, user("web", "a"));
  await context.run(newAttachDetachController(context.ctx));
  await context.clock.advance(2 * 60_000);
  assert.deepEqual(context.events, [
    `Warning FailedAttachVolume AttachVolume.Attach failed for volume "pv-1" : timed out waiting for external-attacher of ${driver} CSI driver to attach volume disk-1`,
  ]);
  await touch(context, "web");
  assert.equal(context.events.length, 1, "its time begins anew");
  await context.clock.advance(2 * 60_000);
  assert.equal(context.events.length, 2);
});

test("tries again where the server refused, and resumes where another process stopped", async (t) => {
  const context = newTestContext(t);
  withDisk(context);
  let refuse = true;
  let tries = 0;
  context.client.react("create", "volumeattachments", () => {
    tries++;
    if (refuse) throw new Error("connection lost");
    return undefined;
  });
  context.client.put(pods, user("web", "a"));
  await context.run(newAttachDetachController(context.ctx));
  assert.match(
    context.events[0] ?? "",
    /AttachVolume.Attach failed for volume "pv-1" : attacher.Attach failed: connection lost$/,
  );
  await touch(context, "web");
  assert.equal(tries, 1, "not before the back-off ends");
  refuse = false;
  await context.clock.advance(500);
  assert.ok(attachmentOf(context, "a"));
});

test("an attachment that the cache does not show yet is no failure", async (t) => {
  const context = newTestContext(t);
  withDisk(context);
  context.client.react("create", "volumeattachments", ({ name }) => {
    throw alreadyExists(volumeAttachments, name);
  });
  context.client.put(pods, user("web", "a"));
  await context.run(newAttachDetachController(context.ctx));
  assert.deepEqual(context.events, []);
});

test("a driver that fails for long is reported every 122 seconds", async (t) => {
  const context = newTestContext(t);
  withDisk(context);
  context.client.put(pods, user("web", "a"));
  await context.run(newAttachDetachController(context.ctx));
  await answer(context, "a", { attached: false, attachError: { message: "no slot" } });
  // Checked early: with a back-off that does not grow, the longer time would take thousands of attempts.
  await context.clock.advance(7_500);
  assert.equal(context.events.length, 5, "after 0, 0.5, 1.5, 3.5 and 7.5 s");
  await context.clock.advance(120_000);
  assert.equal(context.events.length, 9, "also after 15.5, 31.5, 63.5 and 127.5 s");
  await context.clock.advance(121_999);
  assert.equal(context.events.length, 9);
  await context.clock.advance(1);
  assert.equal(context.events.length, 10);
  await context.clock.advance(10 * 122_000);
  assert.equal(context.events.length, 20);
});

test("a detach that failed is tried again after its back-off, not before", async (t) => {
  const context = newTestContext(t);
  await attachedOnA(context);
  let [refusals, tries] = [1, 0];
  context.client.react("delete", "volumeattachments", () => {
    tries++;
    if (refusals-- > 0) throw serviceUnavailable("away");
  });
  context.client.remove(pods, "default/web");
  await settle(30);
  assert.equal(tries, 1);
  assert.deepEqual(listOn(context, "a"), [{ name: id, devicePath: "" }], "the node may use it meanwhile");
  await uses(context, "a", []);
  assert.equal(tries, 1);
  await context.clock.advance(500);
  assert.equal(attachmentOf(context, "a"), undefined);
  assert.match(await context.ctx.registry.render(), /operation_name="volume_detach",status="fail-unknown"[^}]*\} 1/);
});

test("a driver's failure on one node is tried again in its time though that on another has longer to go", async (t) => {
  const context = newTestContext(t);
  withDisk(context, { accessModes: ["ReadWriteMany"] });
  context.client.put(pods, user("web", "a"), user("next", "b"));
  await context.run(newAttachDetachController(context.ctx));
  await answer(context, "a", { attached: false, attachError: { message: "no slot" } });
  assert.equal(context.events.length, 1);
  await context.clock.advance(500);
  assert.equal(context.events.length, 2);
});

test("takes a volume off at once when the node that used it is removed after the pod", async (t) => {
  const context = newTestContext(t);
  await attachedOnA(context);
  await uses(context, "a", [id]);
  context.client.remove(pods, "default/web");
  await settle(30);
  assert.ok(attachmentOf(context, "a"));
  context.client.remove(nodes, "a");
  await settle(30);
  assert.equal(attachmentOf(context, "a"), undefined);
});

test("attaches when the node leaves that to the control plane from now on", async (t) => {
  const context = newTestContext(t);
  withDisk(context);
  context.client.put(nodes, aNode({ name: "a" }));
  context.client.put(pods, user("web", "a"));
  await context.run(newAttachDetachController(context.ctx));
  assert.deepEqual(context.client.writes, []);
  context.client.put(nodes, aManagedNode("a"));
  await settle(30);
  assert.ok(attachmentOf(context, "a"));
});

test("attaches when the driver object that made that unnecessary is removed", async (t) => {
  const context = newTestContext(t);
  withDisk(context);
  context.client.put(csiDrivers, { metadata: { name: driver }, spec: { attachRequired: false } });
  context.client.put(pods, user("web", "a"));
  await context.run(newAttachDetachController(context.ctx));
  assert.deepEqual(context.client.writes, []);
  context.client.remove(csiDrivers, driver);
  await settle(30);
  assert.ok(attachmentOf(context, "a"));
});

/** An attachment that exists before the controller starts. */
const left = (node: string): VolumeAttachment => ({
  apiVersion: "storage.k8s.io/v1",
  kind: "VolumeAttachment",
  metadata: { name: attachmentName(id, node), uid: `va-${node}` },
  spec: { attacher: driver, nodeName: node, source: { persistentVolumeName: "pv-1" } },
  status: { attached: true },
});

test("detaches after a restart what is no longer needed, and reports nothing of what stays", async (t) => {
  const context = newTestContext(t);
  withDisk(context);
  context.client.put(volumeAttachments, left("a"), left("b"));
  context.client.put(pods, user("web", "a"));
  await context.run(newAttachDetachController(context.ctx));
  assert.ok(attachmentOf(context, "a"));
  assert.equal(attachmentOf(context, "b"), undefined);
  assert.deepEqual(context.events, []);
  assert.deepEqual(listOn(context, "a"), [{ name: id, devicePath: "" }]);
});

test("detaches after a restart also what the server lists last", async (t) => {
  const context = newTestContext(t);
  withDisk(context);
  context.client.put(volumeAttachments, left("b"));
  let isAway = true;
  context.client.react("list", "volumeattachments", () => {
    if (isAway) throw serviceUnavailable("away");
    return undefined;
  });
  await context.run(newAttachDetachController(context.ctx));
  isAway = false;
  await context.clock.advance(5000);
  await settle(60);
  assert.equal(attachmentOf(context, "b"), undefined);
});

test("finds an attachment whose volume is gone by the node's own list", async (t) => {
  const context = newTestContext(t);
  context.client.put(nodes, { ...aManagedNode("a"), status: { volumesAttached: [{ name: id, devicePath: "" }] } });
  context.client.put(volumeAttachments, left("a"));
  await context.run(newAttachDetachController(context.ctx));
  assert.equal(attachmentOf(context, "a"), undefined);
  assert.equal(listOn(context, "a"), undefined);
});

const removals = {
  pod: ({ client }: TestContext) => client.remove(pods, "default/web"),
  node: ({ client }: TestContext) => client.remove(nodes, "a"),
  PersistentVolume: ({ client }: TestContext) => client.remove(persistentVolumes, "pv-1"),
};
for (const order of [
  ["PersistentVolume", "node", "pod"],
  ["node", "PersistentVolume", "pod"],
  ["PersistentVolume", "pod", "node"],
] as const) {
  test(`detaches a volume when everything that refers to it is gone: ${order.join(", then ")}`, async (t) => {
    const context = newTestContext(t);
    await attachedOnA(context);
    await uses(context, "a", [id]);
    for (const gone of order) {
      assert.ok(attachmentOf(context, "a"), gone);
      removals[gone](context);
      await settle(30);
    }
    assert.equal(attachmentOf(context, "a"), undefined);
    context.client.put(volumeAttachments, left("a"));
    await settle(30);
    assert.ok(attachmentOf(context, "a"), "from now on it is another's");
  });
}

test("leaves attachments alone that others make while it runs", async (t) => {
  const context = newTestContext(t);
  withDisk(context);
  await context.run(newAttachDetachController(context.ctx));
  context.client.put(volumeAttachments, left("a"));
  await settle(30);
  assert.ok(attachmentOf(context, "a"));
});

test("keeps what others attached in a node's list", async (t) => {
  const context = newTestContext(t);
  withDisk(context);
  const foreign = { name: "kubernetes.io/gce-pd/x", devicePath: "/dev/sdb" };
  context.client.put(nodes, { ...aManagedNode("a"), status: { volumesAttached: [foreign] } });
  context.client.put(pods, user("web", "a"));
  await context.run(newAttachDetachController(context.ctx));
  await answer(context, "a", { attached: true });
  assert.deepEqual(listOn(context, "a"), [foreign, { name: id, devicePath: "" }]);
});

for (const { name, prepare } of [
  {
    name: "on a node that attaches its volumes itself",
    prepare: ({ client }: TestContext) => client.put(nodes, aNode({ name: "a" })),
  },
  {
    name: "of a driver that has nothing to attach",
    prepare: ({ client }: TestContext) => client.put(csiDrivers, { metadata: { name: driver }, spec: { attachRequired: false } }),
  },
  {
    name: "of a claim that is not bound",
    prepare: ({ client }: TestContext) => client.put(persistentVolumeClaims, aClaim({ volumeName: "pv-1" })),
  },
  {
    name: "of a claim whose volume is another's",
    prepare: ({ client }: TestContext) =>
      client.put(persistentVolumes, aVolume("pv-1", { claimRef: { ...claimRef, uid: "other" } })),
  },
]) {
  test(`attaches no volume ${name}`, async (t) => {
    const context = newTestContext(t);
    withDisk(context);
    prepare(context);
    context.client.put(pods, user("web", "a"));
    await context.run(newAttachDetachController(context.ctx));
    assert.deepEqual(context.client.writes, []);
  });
}

test("attaches as soon as the claim is bound", async (t) => {
  const context = newTestContext(t);
  withDisk(context);
  context.client.put(persistentVolumeClaims, aClaim());
  context.client.put(pods, user("web", "a"));
  await context.run(newAttachDetachController(context.ctx));
  assert.equal(attachmentOf(context, "a"), undefined);
  context.client.put(persistentVolumeClaims, { ...aClaim({ volumeName: "pv-1" }), status: { phase: "Bound" } });
  await settle(30);
  assert.ok(attachmentOf(context, "a"));
});

test("keeps a running pod's volume though its claim cannot be seen any more", async (t) => {
  const context = newTestContext(t);
  await attachedOnA(context);
  context.client.remove(persistentVolumeClaims, "default/data");
  context.client.put(pods, { ...user("web", "a"), metadata: { ...user("web", "a").metadata, labels: { touched: "yes" } } });
  await settle(30);
  assert.ok(attachmentOf(context, "a"));
});

test("looks again when an attachment vanishes", async (t) => {
  const context = newTestContext(t);
  await attachedOnA(context);
  context.client.remove(volumeAttachments, attachmentName(id, "a"));
  await settle(30);
  assert.equal(attachmentOf(context, "a")?.status, undefined, "made anew");
  assert.ok(attachmentOf(context, "a"));
  assert.equal(listOn(context, "a"), undefined);
});

test("looks at everything again each period, unless that is turned off", async (t) => {
  for (const sync of [true, false]) {
    const attachDetach = { syncPeriodMs: 60_000, sync };
    const context = newTestContext(t, { volumes: { ...defaultConfig.volumes, attachDetach } });
    const { client, clock, ctx } = context;
    withDisk(context);
    client.put(pods, user("web", "a"));
    await context.run(newAttachDetachController({ ...ctx, queueMetrics: queueMetrics(ctx.registry, clock) }));
    await answer(context, "a", { attached: true });
    const looks = async () =>
      /workqueue_adds_total\{name="attachdetach_volumes"\} (\d+)/.exec(await ctx.registry.render())?.[1] ?? "";
    const before = await looks();
    await clock.advance(60_000);
    assert.equal((await looks()) !== before, sync);
  }
});

test("what the informers show again without a change is not looked at again", async (t) => {
  const context = newTestContext(t);
  const { client, clock, ctx } = context;
  withDisk(context);
  client.put(nodes, { ...aManagedNode("a"), status: { volumesInUse: [id] } });
  const informers = newInformerFactory(client, { log: discardLogger, clock, resyncMs: 600_000 });
  const config = { ...ctx.config, volumes: { ...ctx.config.volumes, attachDetach: { syncPeriodMs: 60_000, sync: false } } };
  informers.start(context.signal);
  const base = { ...ctx, config, informers, queueMetrics: queueMetrics(ctx.registry, clock) };
  await context.run(newAttachDetachController(base));
  const looks = async () => /workqueue_adds_total\{name="attachdetach_nodes"\} \d+/.exec(await ctx.registry.render())?.[0];
  const before = await looks();
  await clock.advance(600_000);
  await settle(30);
  assert.equal(await looks(), before);
  await uses(context, "a", []);
  assert.notEqual(await looks(), before);
});

const ebs = volumeId("ebs.csi.aws.com", "vol-1");
for (const { name, source } of [
  { name: "behind a claim", source: { persistentVolumeName: "pv-1" } },
  { name: "that stands in the pod", source: undefined },
]) {
  test(`has the CSI driver attach an in-tree volume ${name}, on nodes that have the driver`, async (t) => {
    const context = newTestContext(t);
    const disk = { awsElasticBlockStore: { volumeID: "aws://zone-1/vol-1" } };
    withDisk(context, { csi: undefined, ...disk });
    const inline = { name: "v", ...disk };
    const pod = source === undefined ? aPod({ name: "web", nodeName: "a", spec: { volumes: [inline] } }) : user("web", "a");
    context.client.put(pods, pod);
    await context.run(newAttachDetachController(context.ctx));
    assert.deepEqual(context.client.writes, []);
    const annotations = { "storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs,kubernetes.io/gce-pd" };
    context.client.put(csiNodes, { metadata: { name: "a", annotations }, spec: { drivers: [] } });
    await settle(30);
    const { spec } = attachmentOf(context, "a", ebs) ?? {};
    assert.equal(spec?.attacher, "ebs.csi.aws.com");
    if (source !== undefined) assert.deepEqual(spec?.source, source);
    else assert.equal(spec?.source.inlineVolumeSpec?.csi?.volumeHandle, "vol-1");
    // Not attached yet, so the node's list does not lead to it.
    context.client.remove(pods, "default/web");
    await settle(30);
    assert.equal(attachmentOf(context, "a", ebs), undefined);
  });
}

test("leaves alone what others attach to a node from which it has detached", async (t) => {
  const context = newTestContext(t);
  await attachedOnA(context);
  context.client.remove(pods, "default/web");
  await settle(30);
  assert.equal(attachmentOf(context, "a"), undefined);
  context.client.put(volumeAttachments, left("a"));
  await settle(30);
  assert.ok(attachmentOf(context, "a"));
});

test("a pod of a node that is gone keeps its volume also when the pod changes", async (t) => {
  const context = newTestContext(t);
  await attachedOnA(context);
  context.client.remove(nodes, "a");
  await settle(30);
  const pod = context.client.object<Pod>(pods, "default/web") as Pod;
  context.client.put(pods, { ...pod, metadata: { ...pod.metadata, labels: { touched: "yes" } } });
  await settle(30);
  assert.ok(attachmentOf(context, "a"));
});

test("a detached volume is counted as such, with how long it took", async (t) => {
  const context = newTestContext(t);
  await attachedOnA(context);
  context.client.remove(pods, "default/web");
  await uses(context, "a", []);
  assert.equal(attachmentOf(context, "a"), undefined);
  assert.match(await context.ctx.registry.render(), /_count\{[^}]*operation_name="volume_detach"[^}]*status="success"[^}]*\} 1/);
});

test("a volume whose attachment was being deleted before a restart is no longer in its node's list", async (t) => {
  const context = newTestContext(t);
  withDisk(context);
  const node = aManagedNode("a");
  context.client.put(nodes, { ...node, status: { ...node.status, volumesAttached: [{ name: id, devicePath: "" }] } });
  context.client.put(volumeAttachments, {
    metadata: { name: attachmentName(id, "a"), finalizers: ["external-attacher/x"], deletionTimestamp: "2022-01-01T00:00:00Z" },
    spec: { attacher: driver, nodeName: "a", source: { persistentVolumeName: "pv-1" } },
    status: { attached: true },
  });
  await context.run(newAttachDetachController(context.ctx));
  await settle(30);
  assert.deepEqual(listOn(context, "a") ?? [], []);
});

test("attaches for a pod whose node comes after it", async (t) => {
  const context = newTestContext(t);
  withDisk(context);
  context.client.remove(nodes, "a");
  context.client.put(pods, user("web", "a"));
  await context.run(newAttachDetachController(context.ctx));
  assert.deepEqual(context.client.writes, []);
  context.client.put(nodes, aManagedNode("a"));
  await settle(30);
  assert.ok(attachmentOf(context, "a"));
});

test("a node's list has an attached volume as soon as its PersistentVolume is seen", async (t) => {
  const context = newTestContext(t);
  context.client.put(nodes, aManagedNode("a"));
  context.client.put(volumeAttachments, left("a"));
  await context.run(newAttachDetachController(context.ctx));
  assert.equal(listOn(context, "a"), undefined);
  withDisk(context);
  context.client.put(pods, user("web", "a"));
  await settle(30);
  assert.deepEqual(listOn(context, "a"), [{ name: id, devicePath: "" }]);
});

test("a failure that was there at the start is timed from then on", async (t) => {
  const context = newTestContext(t);
  withDisk(context);
  context.client.put(volumeAttachments, { ...left("a"), status: { attached: false, attachError: { message: "no slot" } } });
  context.client.put(pods, user("web", "a"));
  await context.run(newAttachDetachController(context.ctx));
  await context.clock.advance(500);
  assert.equal(context.events.length, 2);
  assert.match(
    await context.ctx.registry.render(),
    /duration_seconds_sum\{[^}]*operation_name="volume_attach",status="fail-unknown"[^}]*\} 0.5\n/,
  );
});

test("an attachment that another client deleted first is no failed detach", async (t) => {
  const context = newTestContext(t);
  await attachedOnA(context);
  context.client.react("delete", "volumeattachments", ({ name }) => {
    context.client.remove(volumeAttachments, name);
    throw notFound(volumeAttachments, name);
  });
  context.client.remove(pods, "default/web");
  await settle(30);
  assert.equal(listOn(context, "a"), undefined);
  assert.doesNotMatch(await context.ctx.registry.render(), /operation_name="volume_detach",status="fail-unknown"/);
});

test("detaches after a restart a volume that stood in a pod, though its node does not list it", async (t) => {
  const context = newTestContext(t);
  context.client.put(nodes, aManagedNode("a"));
  const inlineVolumeSpec = { csi: { driver: "ebs.csi.aws.com", volumeHandle: "vol-1" }, accessModes: ["ReadWriteOnce"] };
  context.client.put<VolumeAttachment>(volumeAttachments, {
    metadata: { name: attachmentName(ebs, "a") },
    spec: { attacher: "ebs.csi.aws.com", nodeName: "a", source: { inlineVolumeSpec } },
    status: { attached: true },
  });
  await context.run(newAttachDetachController(context.ctx));
  await settle(30);
  assert.equal(attachmentOf(context, "a", ebs), undefined);
});

test("the metrics count the pods that use a volume on each node, and each of its nodes", async (t) => {
  const context = newTestContext(t);
  withDisk(context, { accessModes: ["ReadWriteMany"] });
  context.client.put(pods, user("one", "a"), user("two", "a"), user("three", "b"));
  await context.run(newAttachDetachController(context.ctx));
  await answer(context, "a", { attached: true });
  for (let i = 0; i < 2; i++) {
    const text = await context.ctx.registry.render();
    for (const line of [
      `storage_count_attachable_volumes_in_use{node="a",volume_plugin="kubernetes.io/csi:${driver}"} 2`,
      `storage_count_attachable_volumes_in_use{node="b",volume_plugin="kubernetes.io/csi:${driver}"} 1`,
      `attachdetach_controller_total_volumes{plugin_name="kubernetes.io/csi:${driver}",state="desired_state_of_world"} 2`,
    ])
      assert.ok(text.includes(`\n${line}\n`), line);
  }
});

test("an attachment that names another volume for the same disk is the pod's, and not made again", async (t) => {
  const context = newTestContext(t);
  withDisk(context);
  context.client.put<VolumeAttachment>(volumeAttachments, {
    metadata: { name: attachmentName(id, "a") },
    spec: { attacher: driver, nodeName: "a", source: { persistentVolumeName: "former" } },
    status: { attached: true },
  });
  context.client.put(pods, user("web", "a"));
  await context.run(newAttachDetachController(context.ctx));
  await settle(30);
  assert.deepEqual(
    context.client.writes.filter(({ resource }) => resource === "volumeattachments"),
    [],
  );
});
