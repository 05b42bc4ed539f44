import assert from "node:assert/strict";
import { test } from "node:test";
import type { VolumeAttachment } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import { defaultsOf } from "../../../testing/kind-rules.ts";
import { volumeAttachmentStrategy } from "./strategy.ts";

test("a volume that an attachment describes gets its source's defaults, and no others", () => {
  const source = { inlineVolumeSpec: { rbd: { monitors: ["m"], image: "i" }, azureDisk: { diskName: "d", diskURI: "u" } } };
  const made = defaultsOf("volumeattachments.storage.k8s.io", { spec: { attacher: "a", nodeName: "n", source } });
  assert.deepEqual((made as VolumeAttachment).spec.source.inlineVolumeSpec, {
    rbd: { monitors: ["m"], image: "i", pool: "rbd", user: "admin", keyring: "/etc/ceph/keyring" },
    azureDisk: { diskName: "d", diskURI: "u", cachingMode: "ReadWrite", kind: "Shared", fsType: "ext4", readOnly: false },
  });
});

test("an update keeps the status, also that of an attachment without one", () => {
  const attachment = (status?: object) => ({ metadata: { name: "a" }, spec: {}, ...(status && { status }) }) as VolumeAttachment;
  for (const status of [undefined, { attached: true }]) {
    const next = attachment({ attached: false });
    volumeAttachmentStrategy.prepareForUpdate?.(next, attachment(status), undefined as never);
    assert.deepEqual(next, attachment(status));
  }
});
