import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { type ImageSpec, imageArchive } from "./oci.ts";
import { tar } from "./tar.ts";

/** The files of an archive, unpacked by tar. */
function unpacked(t: TestContext, archive: Buffer) {
  const folder = mkdtempSync(join(tmpdir(), "cox-oci-"));
  t.after(() => rmSync(folder, { recursive: true }));
  execFileSync("tar", ["-xf", "-", "-C", folder], { input: archive });
  const bytes = (path: string): Buffer => readFileSync(join(folder, path));
  const json = (path: string) => JSON.parse(bytes(path).toString());
  return { folder, bytes, json };
}

const layer = [{ type: "file", path: "a", content: Buffer.from("x".repeat(512)) }] as const;
const image: ImageSpec = {
  names: ["a.test/one:1", "a.test/two:2"],
  layer,
  entrypoint: ["/a"],
  command: ["b"],
  labels: { l: "1" },
};

test("an archive is an OCI layout and an image of docker, with every blob under its hash", (t) => {
  const { folder, bytes, json } = unpacked(t, imageArchive(image));
  assert.deepEqual(readdirSync(folder).toSorted(), ["blobs", "index.json", "manifest.json", "oci-layout"]);
  assert.deepEqual(json("oci-layout"), { imageLayoutVersion: "1.0.0" });
  const { schemaVersion, manifests } = json("index.json");
  const names = manifests.map(({ annotations }: { annotations: object }) => annotations);
  assert.deepEqual([schemaVersion, names], [2, image.names.map((name) => ({ "io.containerd.image.name": name }))]);
  const blob = ({ digest, size }: { digest: string; size: number }): string => {
    const path = `blobs/${digest.replace(":", "/")}`;
    assert.equal(`sha256:${createHash("sha256").update(bytes(path)).digest("hex")}`, digest);
    assert.equal(bytes(path).length, size);
    return path;
  };
  const mediaType = "application/vnd.oci.image.manifest.v1+json";
  const manifest = json(blob(manifests[0]));
  assert.equal(manifests[0].digest, manifests[1].digest);
  assert.deepEqual([manifests[0].mediaType, manifest.schemaVersion, manifest.mediaType], [mediaType, 2, mediaType]);
  assert.equal(manifest.config.mediaType, "application/vnd.oci.image.config.v1+json");
  assert.deepEqual(
    manifest.layers.map((one: { mediaType: string }) => one.mediaType),
    ["application/vnd.oci.image.layer.v1.tar"],
  );
  assert.deepEqual(bytes(blob(manifest.layers[0])), tar(layer));
  const config = json(blob(manifest.config));
  assert.deepEqual(config.config, {
    Env: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
    Entrypoint: ["/a"],
    Cmd: ["b"],
    Labels: { l: "1" },
  });
  assert.deepEqual(
    [config.os, config.architecture, config.rootfs],
    [
      "linux",
      { x64: "amd64", arm64: "arm64" }[process.arch as string],
      { type: "layers", diff_ids: [manifest.layers[0].digest] },
    ],
  );
  assert.deepEqual(json("manifest.json"), [
    { Config: blob(manifest.config), RepoTags: image.names, Layers: [blob(manifest.layers[0])] },
  ]);
  assert.deepEqual(imageArchive(image), imageArchive(image), "the same each time");
});

test("what an image does not say is not in its configuration; its own environment is", (t) => {
  const { json } = unpacked(t, imageArchive({ names: ["a"], layer, env: ["A=b"] }));
  const manifest = json(`blobs/${json("index.json").manifests[0].digest.replace(":", "/")}`);
  assert.deepEqual(json(`blobs/${manifest.config.digest.replace(":", "/")}`).config, { Env: ["A=b"] });
});

test("a tar header is whole: owner, size, time, type, checksum; contents fill blocks of 512 bytes", () => {
  const content = Buffer.from("x".repeat(513));
  const archive = tar([
    { type: "file", path: "f", content },
    { type: "folder", path: "d", mode: 0o1777 },
    { type: "symlink", path: "l", target: "t".repeat(100) },
  ]);
  assert.equal(archive.length, 512 + 1024 + 512 + 512 + 1024);
  assert.ok(archive.subarray(-1024).every((byte) => byte === 0));
  const field = (block: number, from: number, length: number): string =>
    archive.toString("latin1", block + from, block + from + length);
  for (const [block, name, mode, size, type, target] of [
    [0, "f", "0000644\0", "00000001001\0", "0", ""],
    [1536, "d/", "0001777\0", "00000000000\0", "5", ""],
    [2048, "l", "0000777\0", "00000000000\0", "2", "t".repeat(100)],
  ] as const) {
    assert.equal(field(block, 0, 100).replaceAll("\0", ""), name);
    assert.deepEqual(
      [field(block, 100, 8), field(block, 108, 8), field(block, 116, 8), field(block, 124, 12), field(block, 136, 12)],
      [mode, "0000000\0", "0000000\0", size, "00000000000\0"],
    );
    assert.deepEqual(
      [field(block, 156, 1), field(block, 157, 100).replaceAll("\0", ""), field(block, 257, 8)],
      [type, target, "ustar\0" + "00"],
    );
    const header = Buffer.from(archive.subarray(block, block + 512)).fill(" ", 148, 156);
    const sum = header.reduce((total, byte) => total + byte, 0);
    assert.equal(field(block, 148, 8), `${sum.toString(8).padStart(6, "0")}\0 `);
  }
  assert.doesNotThrow(() => tar([{ type: "folder", path: "a".repeat(99) }]));
  assert.throws(() => tar([{ type: "folder", path: "a".repeat(100) }]), {
    message: `too long for a tar header: ${"a".repeat(100)}/`,
  });
  assert.throws(() => tar([{ type: "symlink", path: "l", target: "ä".repeat(51) }]), /too long/);
});
