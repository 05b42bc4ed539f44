import assert from "node:assert/strict";
import { test } from "node:test";
import { conflict } from "@coxswain/apimachinery/objects/errors/status-error";
import type { PersistentVolumeClaim, PersistentVolumeSpec } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { persistentVolumeClaims, persistentVolumes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { preResizeCapacity, storageResizer } from "@coxswain/apimachinery/volumes/annotations";
import { newTestContext, type TestContext } from "../../testing/test-context.ts";
import { aClaim, aVolume } from "../../testing/volumes.ts";
import { newExpandController } from "./controller.ts";

const claimRef = { namespace: "default", name: "data", uid: "data-uid" };
const ebs = { hostPath: undefined, awsElasticBlockStore: { volumeID: "vol-1" } } as unknown as Partial<PersistentVolumeSpec>;
const csi = { hostPath: undefined, csi: { driver: "x", volumeHandle: "y" } } as unknown as Partial<PersistentVolumeSpec>;
const gluster = { hostPath: undefined, glusterfs: { endpoints: "e", path: "p" } } as unknown as Partial<PersistentVolumeSpec>;

function bound(storage: string, phase = "Bound"): PersistentVolumeClaim {
  const claim = aClaim({ volumeName: "a", resources: { requests: { storage } } });
  return { ...claim, status: { phase, capacity: { storage: "1Gi" } } };
}

async function growing(context: TestContext, spec: Partial<PersistentVolumeSpec>, claim = bound("2Gi")): Promise<void> {
  context.client.put(persistentVolumes, aVolume("a", { claimRef, ...spec }));
  context.client.put(persistentVolumeClaims, claim);
  await context.run(newExpandController(context.ctx));
}

const ignored =
  "Ignoring the PVC: didn't find a plugin capable of expanding the volume; waiting for an external controller to process this PVC.";

for (const { name, spec, claim, gates, events } of [
  { name: "a driver beside the control plane", spec: csi, events: [`Normal ExternalExpanding ${ignored}`] },
  { name: "a plugin that is not known", spec: gluster, events: [`Warning ExternalExpanding ${ignored}`] },
  {
    name: "an in-tree plugin that nothing has taken over",
    spec: ebs,
    gates: { CSIMigrationAWS: false },
    events: [`Warning ExternalExpanding ${ignored}`],
  },
  { name: "a claim that has what it asks for", spec: csi, claim: bound("1Gi"), events: [] },
  { name: "a claim that is not bound", spec: csi, claim: bound("2Gi", "Pending"), events: [] },
  {
    name: "a volume of a claim in another namespace",
    spec: { ...csi, claimRef: { ...claimRef, namespace: "other" } },
    events: [],
  },
  { name: "a volume of another claim", spec: { ...csi, claimRef: { ...claimRef, uid: "other" } }, events: [] },
] as {
  name: string;
  spec: Partial<PersistentVolumeSpec>;
  claim?: PersistentVolumeClaim;
  gates?: Record<string, boolean>;
  events: string[];
}[]) {
  test(`says what it does about ${name}`, async (t) => {
    const context = newTestContext(t, {}, gates);
    await growing(context, spec, claim);
    assert.deepEqual(context.events, events);
    assert.deepEqual(context.client.writes, []);
  });
}

test("names the CSI driver that grows the volumes of an in-tree plugin, once", async (t) => {
  const context = newTestContext(t);
  await growing(context, ebs);
  const claim = context.client.object(persistentVolumeClaims, "default/data");
  assert.equal(claim?.metadata.annotations?.[storageResizer], "ebs.csi.aws.com");
  assert.deepEqual(context.events, [
    "Normal ExternalExpanding CSI migration enabled for kubernetes.io/aws-ebs; waiting for external resizer to expand the pvc",
  ]);
  assert.deepEqual(
    context.client.writes.map(({ verb, subresource }) => `${verb} ${subresource}`),
    ["patch status"],
  );
});

test("a claim is processed when its requested size grows, not on every change", async (t) => {
  const context = newTestContext(t);
  await growing(context, csi, bound("1Gi"));
  const put = async (storage: string, labels: Record<string, string>) => {
    const claim = bound(storage);
    context.client.put(persistentVolumeClaims, { ...claim, metadata: { ...claim.metadata, labels } });
    await settle(30);
    return context.events.length;
  };
  assert.deepEqual([await put("1Gi", { a: "1" }), await put("2Gi", { a: "2" }), await put("2Gi", { a: "3" })], [0, 1, 1]);
});

test("a claim is processed when its volume has grown, while that remembers the size before", async (t) => {
  const context = newTestContext(t);
  context.client.put(persistentVolumes, aVolume("a", { claimRef, ...csi }));
  context.client.put(persistentVolumeClaims, bound("3Gi"));
  await context.run(newExpandController(context.ctx));
  context.client.put(persistentVolumes, aVolume("a", { claimRef, ...csi }, { [preResizeCapacity]: "1Gi" }));
  const counts: number[] = [context.events.length];
  for (const storage of ["3Gi", "3Gi", "2Gi"]) {
    context.client.put(persistentVolumeClaims, { ...bound("3Gi"), status: { phase: "Bound", capacity: { storage } } });
    await settle(30);
    counts.push(context.events.length);
  }
  assert.deepEqual(counts, [1, 2, 2, 2]);
});

test("is not there when claims cannot grow", (t) => {
  assert.equal(newExpandController(newTestContext(t, {}, { ExpandPersistentVolumes: false }).ctx), undefined);
});

test("a claim that has what it asks for is processed while its volume remembers the size before", async (t) => {
  const context = newTestContext(t);
  const volume = aVolume("a", { claimRef, ...csi }, { [preResizeCapacity]: "1Gi" });
  context.client.put(persistentVolumes, volume);
  context.client.put(persistentVolumeClaims, bound("1Gi"));
  await context.run(newExpandController(context.ctx));
  assert.deepEqual(context.events, [`Normal ExternalExpanding ${ignored}`]);
});

test("a driver that is named already is not named again", async (t) => {
  const context = newTestContext(t);
  const claim = bound("2Gi");
  claim.metadata.annotations = { [storageResizer]: "ebs.csi.aws.com" };
  await growing(context, ebs, claim);
  assert.deepEqual([context.events.length, context.client.writes], [1, []]);
});

test("a driver that could not be named is reported, and named later on the claim as it is then", async (t) => {
  const context = newTestContext(t);
  let failures = 0;
  context.client.react("patch", "persistentvolumeclaims", () => {
    if (failures++ > 0) return undefined;
    throw conflict(persistentVolumeClaims, "data", "it was modified");
  });
  await growing(context, ebs);
  const text = /^Warning ExternalExpanding Error setting resizer annotation to pvc default\/data, with error .*it was modified/;
  assert.match(context.events[1] ?? "", text);
  await context.clock.advance(1000);
  await settle(30);
  const claim = context.client.object(persistentVolumeClaims, "default/data");
  assert.equal(claim?.metadata.annotations?.[storageResizer], "ebs.csi.aws.com");
  const sent = context.client.writes[0]?.sent as PersistentVolumeClaim | undefined;
  assert.ok(sent?.metadata.resourceVersion, "written only on what was read");
});
