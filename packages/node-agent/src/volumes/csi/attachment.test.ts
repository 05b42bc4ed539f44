import assert from "node:assert/strict";
import { test } from "node:test";
import { volumeAttachments } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { VolumeAttachment } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { aVolume } from "../../testing/csi-bench.ts";
import { VolumeWaits } from "../volume.ts";
import { newAttachments } from "./attachment.ts";
import { persistentSource } from "./csi-source.ts";

function attaching(byController: boolean) {
  const client = newFakeClient({ clock: newFakeClock() });
  const attachments = newAttachments({ client, nodeName: "n1", node: () => undefined, byController });
  const source = persistentSource(aVolume(), false)!;
  return { client, attachments, source };
}

test("without the controller an attachment is requested once, and read again until it is attached", async () => {
  const { client, attachments, source } = attaching(false);
  for (const _ of [1, 2]) await assert.rejects(attachments.contextOf(source), VolumeWaits);
  const [made, ...others] = client.objects<VolumeAttachment>(volumeAttachments);
  assert.deepEqual([made?.spec.source, others], [{ persistentVolumeName: "pv1" }, []]);
  client.put(volumeAttachments, { ...made, status: { attached: true } } as VolumeAttachment);
  assert.deepEqual(await attachments.contextOf(source), {});
});

test("without the controller an attachment that is gone already counts as released; other failures are passed on", async () => {
  const { client, attachments, source } = attaching(false);
  await attachments.release(source);
  client.react("delete", "volumeattachments", () => {
    throw new Error("connect ECONNREFUSED");
  });
  await assert.rejects(attachments.release(source), /ECONNREFUSED/);
});

test("attachments of the controller are neither made nor deleted by the node", async () => {
  const { client, attachments, source } = attaching(true);
  await assert.rejects(attachments.contextOf(source));
  await attachments.release(source);
  assert.deepEqual(client.writes, []);
});

test("a failure to request an attachment, or to read it, is one of the volume", async () => {
  const refused = attaching(false);
  refused.client.react("create", "volumeattachments", () => {
    throw new Error("quota");
  });
  await assert.rejects(refused.attachments.contextOf(refused.source), { message: "quota" });
  const unread = attaching(false);
  unread.client.react("get", "volumeattachments", () => {
    throw new Error("away");
  });
  await assert.rejects(unread.attachments.contextOf(unread.source), {
    message: /^volume handle-1 has GET error for volume attachment csi-[0-9a-f]{64}: away$/,
  });
});
