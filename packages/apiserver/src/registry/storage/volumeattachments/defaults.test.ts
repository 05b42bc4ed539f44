import assert from "node:assert/strict";
import { test } from "node:test";
import type { VolumeAttachment } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import { defaultsOf } from "../../../testing/kind-rules.ts";

test("a volume that an attachment describes gets its source's defaults, and no others", () => {
  const source = { inlineVolumeSpec: { rbd: { monitors: ["m"], image: "i" }, azureDisk: { diskName: "d", diskURI: "u" } } };
  const made = defaultsOf("volumeattachments.storage.k8s.io", { spec: { attacher: "a", nodeName: "n", source } });
  assert.deepEqual((made as VolumeAttachment).spec.source.inlineVolumeSpec, {
    rbd: { monitors: ["m"], image: "i", pool: "rbd", user: "admin", keyring: "/etc/ceph/keyring" },
    azureDisk: { diskName: "d", diskURI: "u", cachingMode: "ReadWrite", kind: "Shared", fsType: "ext4", readOnly: false },
  });
});
