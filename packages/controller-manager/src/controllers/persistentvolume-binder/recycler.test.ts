import assert from "node:assert/strict";
import { test } from "node:test";
import { serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Event, PersistentVolume, Pod } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { events, persistentVolumes, pods } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { aPod } from "@coxswain/apimachinery/testing/builders";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { defaultRecyclerPod } from "../../config/volumes.ts";
import { newTestContext, type TestContext } from "../../testing/test-context.ts";
import { aVolume } from "../../testing/volumes.ts";
import { newPersistentVolumeBinder } from "./controller.ts";
import { recyclerPod } from "./recycler.ts";

const claimRef = { namespace: "default", name: "data", uid: "data-uid" };
const phaseOf = ({ client }: TestContext) => client.object<PersistentVolume>(persistentVolumes, "a")?.status?.phase;
const recycler = ({ client }: TestContext) => client.object<Pod>(pods, "default/recycler-for-a");

/** Runs the binder with a volume that is to be emptied. */
async function recycling(context: TestContext): Promise<void> {
  const volume = aVolume("a", { claimRef, persistentVolumeReclaimPolicy: "Recycle" });
  context.client.put(persistentVolumes, { ...volume, status: { phase: "Bound" } });
  await context.run(newPersistentVolumeBinder(context.ctx));
}

test("events of the recycler are repeated on the volume once, those of other pods are not", async (t) => {
  const context = newTestContext(t);
  await recycling(context);
  const anEvent = (name: string, type: string, about: string): Event => ({
    metadata: { namespace: "default", name },
    involvedObject: { kind: "Pod", namespace: "default", name: about },
    type,
    message: name,
    reportingComponent: "",
    reportingInstance: "",
  });
  context.client.put(
    events,
    anEvent("pulled", "Normal", "recycler-for-a"),
    anEvent("failing", "Warning", "recycler-for-a"),
    anEvent("other", "Normal", "web"),
  );
  await settle(30);
  context.client.put(events, { ...anEvent("pulled", "Normal", "recycler-for-a"), count: 2 });
  await settle(30);
  assert.deepEqual(context.events, ["Normal RecyclerPod Recycler pod: pulled", "Warning RecyclerPod Recycler pod: failing"]);
});

test("a recycler that ended while its watch was renewed has ended", async (t) => {
  const context = newTestContext(t);
  await recycling(context);
  const pod = recycler(context) as Pod;
  context.client.endWatches();
  context.client.put(pods, { ...pod, status: { phase: "Succeeded" } });
  await settle(60);
  assert.equal(phaseOf(context), "Available");
});

for (const { name, end, message } of [
  {
    name: "was deleted",
    end: ({ client }: TestContext) => client.remove(pods, "default/recycler-for-a"),
    message: "recycler pod was deleted",
  },
  {
    name: "failed without a message",
    end: (context: TestContext) => context.client.put(pods, { ...(recycler(context) as Pod), status: { phase: "Failed" } }),
    message: "pod failed, pod.Status.Message unknown",
  },
]) {
  test(`a recycler that ${name} has not emptied the volume`, async (t) => {
    const context = newTestContext(t);
    await recycling(context);
    end(context);
    await settle(60);
    assert.deepEqual(context.events, [`Warning VolumeFailedRecycle Recycle failed: failed to recycle volume: ${message}`]);
    assert.equal(phaseOf(context), "Failed");
    assert.equal(recycler(context), undefined, "it is deleted in any case");
  });
}

test("a recycler that cannot be deleted after its success is reported, and the volume is not free", async (t) => {
  const context = newTestContext(t);
  context.client.react("delete", "pods", () => {
    throw serviceUnavailable("away");
  });
  await recycling(context);
  context.client.put(pods, { ...(recycler(context) as Pod), status: { phase: "Succeeded" } });
  await settle(60);
  assert.equal(phaseOf(context), "Failed");
  assert.match(context.events[0] ?? "", /^Warning VolumeFailedRecycle Recycle failed: failed to delete recycler pod: .*away/);
});

test("a recycler that cannot be created is reported", async (t) => {
  const context = newTestContext(t);
  context.client.react("create", "pods", () => {
    throw serviceUnavailable("away");
  });
  await recycling(context);
  await settle(30);
  assert.match(
    context.events[0] ?? "",
    /^Warning VolumeFailedRecycle Recycle failed: unexpected error creating recycler pod: {2}.*away/,
  );
});

test("the first volume of the template is replaced by the volume, of NFS too, the others stay", () => {
  const others = [{ name: "scratch", emptyDir: {} }];
  const template = { ...defaultRecyclerPod, metadata: { ...defaultRecyclerPod.metadata, generateName: "x-" } };
  template.spec = { ...template.spec, volumes: [{ name: "data" }, ...others] };
  const volume = aVolume("a", { hostPath: undefined, nfs: { server: "s", path: "/p" } } as never);
  const { metadata, spec } = recyclerPod(volume, { template, minimumTimeoutSeconds: 1, timeoutIncrementSeconds: 1 });
  assert.deepEqual(spec.volumes, [{ name: "data", nfs: { server: "s", path: "/p" } }, ...others]);
  assert.deepEqual([metadata.name, metadata.generateName], ["recycler-for-a", undefined]);
});

test("a recycler that failed and cannot be deleted is reported with its own failure", async (t) => {
  const context = newTestContext(t);
  context.client.react("delete", "pods", () => {
    throw serviceUnavailable("away");
  });
  await recycling(context);
  context.client.put(pods, { ...(recycler(context) as Pod), status: { phase: "Failed", message: "no such folder" } });
  await settle(60);
  assert.deepEqual(context.events, ["Warning VolumeFailedRecycle Recycle failed: failed to recycle volume: no such folder"]);
});

test("an old recycler that cannot be deleted is reported, and no other is made", async (t) => {
  const context = newTestContext(t);
  context.client.react("delete", "pods", () => {
    throw serviceUnavailable("away");
  });
  context.client.put(pods, aPod({ name: "recycler-for-a" }));
  await recycling(context);
  await settle(30);
  assert.match(
    context.events[0] ?? "",
    /^Warning VolumeFailedRecycle Recycle failed: failed to delete old recycler pod default\/recycler-for-a: .*away/,
  );
});

test("a volume of NFS has the recycler of NFS, which has five minutes at least", async (t) => {
  const context = newTestContext(t);
  const nfs = { hostPath: undefined, nfs: { server: "s", path: "/p" } } as never;
  const volume = aVolume("a", { claimRef, persistentVolumeReclaimPolicy: "Recycle", ...(nfs as object) });
  context.client.put(persistentVolumes, { ...volume, status: { phase: "Bound" } });
  await context.run(newPersistentVolumeBinder(context.ctx));
  const { activeDeadlineSeconds, volumes } = recycler(context)?.spec ?? {};
  assert.deepEqual([activeDeadlineSeconds, volumes], [300, [{ name: "vol", nfs: { server: "s", path: "/p" } }]]);
});
