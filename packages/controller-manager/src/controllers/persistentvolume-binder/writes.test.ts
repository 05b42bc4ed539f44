import assert from "node:assert/strict";
import { test } from "node:test";
import type { PersistentVolume, PersistentVolumeClaim } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { persistentVolumeClaims, persistentVolumes } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { aClaim, aVolume } from "../../testing/volumes.ts";
import { newBindingWriter } from "./writes.ts";

function writing() {
  const client = newFakeClient();
  const written: string[] = [];
  const events: string[] = [];
  const newest = (what: string) => ({ written: () => void written.push(what) }) as never;
  const recorder = {
    event: (_: unknown, type: string, reason: string, message: string) => void events.push(`${type} ${reason} ${message}`),
    flush: async () => {},
  };
  const writer = newBindingWriter(client, recorder, newest("volume"), newest("claim"));
  const volume = () => client.object<PersistentVolume>(persistentVolumes, "pv") as PersistentVolume;
  return { client, writer, written, events, volume };
}
const { signal } = new AbortController();
const notice = { type: "Warning" as const, reason: "VolumeFailedRecycle", message: "no such folder" };

test("the message of a failed phase goes with the next phase, and what is written is known at once", async () => {
  const { client, writer, written, events, volume } = writing();
  client.put(persistentVolumes, aVolume("pv"));
  await writer.setVolumePhase(volume(), "Failed", signal, notice);
  assert.deepEqual(volume().status, { phase: "Failed", message: notice.message });
  await writer.setVolumePhase(volume(), "Failed", signal, { ...notice, message: "again" });
  assert.deepEqual([events.length, client.writes.length], [1, 1], "the same phase is not written again");
  await writer.setVolumePhase(volume(), "Available", signal);
  assert.deepEqual(volume().status, { phase: "Available" });
  assert.deepEqual([written, events], [["volume", "volume"], ["Warning VolumeFailedRecycle no such folder"]]);
});

test("binding writes both objects and both phases, once", async () => {
  const { client, writer, written, volume } = writing();
  client.put(persistentVolumes, aVolume("pv"));
  client.put(persistentVolumeClaims, aClaim());
  const claim = () => client.objects<PersistentVolumeClaim>(persistentVolumeClaims)[0] as PersistentVolumeClaim;
  await writer.bind(volume(), claim(), signal);
  assert.deepEqual([volume().status?.phase, claim().status?.phase, claim().spec.volumeName], ["Bound", "Bound", "pv"]);
  assert.equal(volume().spec.claimRef?.uid, claim().metadata.uid);
  assert.equal(written.length, 4);
  await writer.bind(volume(), claim(), signal);
  assert.equal(client.writes.length, 4);
});

test("a claim that is lost already is not written again, whatever else its status says", async () => {
  const { client, writer, events } = writing();
  const lost = { ...aClaim(), status: { phase: "Lost" as const, capacity: { storage: "1Gi" } } };
  client.put(persistentVolumeClaims, lost);
  assert.equal(await writer.setClaimPhase(lost, "Lost", undefined, signal, { ...notice, reason: "ClaimLost" }), lost);
  assert.deepEqual([client.writes.length, events], [0, []]);
});

test("a volume that was reserved for a claim stays reserved when it is unbound, without the claim's uid", async () => {
  const { client, writer, volume } = writing();
  const claimRef = { namespace: "default", name: "data", uid: "old" };
  client.put(persistentVolumes, aVolume("pv", { claimRef }));
  await writer.unbind(volume(), signal);
  assert.deepEqual(volume().spec.claimRef, { namespace: "default", name: "data" });
  const { metadata, ...rest } = aVolume("pv", { claimRef });
  const annotations = { "pv.kubernetes.io/bound-by-controller": "yes", other: "kept" };
  client.put(persistentVolumes, { ...rest, metadata: { ...metadata, annotations } });
  await writer.unbind(volume(), signal);
  assert.deepEqual([volume().spec.claimRef, volume().metadata.annotations], [undefined, { other: "kept" }]);
  assert.equal(volume().status?.phase, "Available");
});

test("a claim that named its volume is not marked as bound by the controller, and keeps its conditions", async () => {
  const { client, writer, volume } = writing();
  client.put(persistentVolumes, aVolume("pv"));
  const conditions = [{ type: "FileSystemResizePending", status: "True" as const }];
  client.put(persistentVolumeClaims, { ...aClaim({ volumeName: "pv" }), status: { phase: "Pending", conditions } });
  const claim = () => client.objects<PersistentVolumeClaim>(persistentVolumeClaims)[0] as PersistentVolumeClaim;
  await writer.bind(volume(), claim(), signal);
  assert.deepEqual(claim().metadata.annotations, { "pv.kubernetes.io/bind-completed": "yes" });
  assert.deepEqual([claim().status?.phase, claim().status?.conditions], ["Bound", conditions]);
});
