import assert from "node:assert/strict";
import { test } from "node:test";
import { attachmentName, parsePluginVolumeId, parseVolumeId, pluginVolumeId, volumeId } from "./volume-id.ts";

test("a CSI volume's name has its driver and handle, which may contain any character", () => {
  for (const handle of ["h", "a^b", "x/y", ""]) {
    const id = volumeId("d.example.com", handle);
    assert.deepEqual(parseVolumeId(id), { driver: "d.example.com", handle });
  }
  assert.equal(volumeId("d", "h"), "kubernetes.io/csi/d^h");
  for (const id of ["kubernetes.io/nfs/a^b", "kubernetes.io/csi/d", ""]) assert.equal(parseVolumeId(id), undefined, id);
});

test("the name of another volume has its plugin and name, which may contain slashes", () => {
  const id = pluginVolumeId("kubernetes.io/nfs", "server/a/b");
  assert.deepEqual(parsePluginVolumeId(id), { plugin: "kubernetes.io/nfs", name: "server/a/b" });
  assert.equal(parsePluginVolumeId("kubernetes.io/nfs"), undefined);
});

test("an attachment's name depends on driver, handle and node", () => {
  // Source: sha256 of handle, driver and node, as in pkg/volume/csi getAttachmentName
  const names = [
    attachmentName(volumeId("d", "h"), "n"),
    attachmentName(volumeId("d", "h"), "m"),
    attachmentName(volumeId("d", "i"), "n"),
    attachmentName(volumeId("e", "h"), "n"),
  ];
  assert.equal(names[0], "csi-9072ed11cc1acb5fa433a877ff339b6311d013f33bddd1d0092711a8ace5b16d");
  assert.equal(new Set(names).size, 4);
});
