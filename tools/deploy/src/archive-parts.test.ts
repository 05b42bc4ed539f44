/** The small parts of which an archive and an image are made. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { TarEntry } from "@coxswain/images/tar";
import { billOfMaterials } from "./bill-of-materials.ts";
import { foreignPackages } from "./bundle.ts";
import { sourceOf } from "./call-sites.ts";
import { linkedFiles, withoutDeadLinks } from "./document-links.ts";
import { ofRelease } from "./image.ts";
import { licencesOf } from "./licences.ts";
import { withFolders } from "./with-folders.ts";
import { withoutSymbols } from "./without-symbols.ts";

function folderWith(t: TestContext, files: Readonly<Record<string, string>>): string {
  const root = mkdtempSync(join(tmpdir(), "cox-archive-"));
  t.after(() => rmSync(root, { recursive: true }));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(root, name, ".."), { recursive: true });
    writeFileSync(join(root, name), text);
  }
  return root;
}

test("the packages of a bundle are the innermost folders of its inputs, once each, sorted", () =>
  assert.deepEqual(
    foreignPackages([
      "packages/a/src/main.ts",
      "node_modules/.pnpm/b@1/node_modules/b/index.js",
      "node_modules/.pnpm/a@1/node_modules/@scope/a/lib/x.js",
      "node_modules/.pnpm/a@1/node_modules/@scope/a/lib/y.js",
      "node_modules/c/node_modules/d/index.js",
      "node_modules/c.js",
    ]),
    ["node_modules/.pnpm/a@1/node_modules/@scope/a", "node_modules/.pnpm/b@1/node_modules/b", "node_modules/c/node_modules/d"],
  ));

test("the licences of packages are sorted, each with its texts and notices", (t) => {
  const root = folderWith(t, {
    "b/package.json": '{"name":"b","version":"2.0.0","license":"MIT"}',
    "b/LICENSE.md": "text of b\n\n",
    "b/NOTICE": "notice of b",
    "b/COPYING-lib.txt": "copying of b",
    "b/licences.js": "code",
    "a/package.json": '{"name":"a","version":"1.0.0","license":{"type":"ISC"}}',
    "a/licence": "text of a",
    "c/package.json": '{"name":"c","version":"1.0.0"}',
    "d/package.json": '{"name":"d","version":"1.0.0","license":""}',
  });
  assert.equal(
    licencesOf(root, ["b", "a"]),
    "==== a 1.0.0: ISC\n\ntext of a\n\n\n==== b 2.0.0: MIT\n\ncopying of b\n\ntext of b\n\nnotice of b\n\n",
  );
  for (const name of ["c", "d"])
    assert.throws(() => licencesOf(root, ["a", name]), { message: `${name} 1.0.0 does not name its licence` });
});

test("the bill of materials is CycloneDX, has each package once by its hash, and one without a licence too", (t) => {
  const hash = (byte: number): string => Buffer.alloc(64, byte).toString("base64");
  const root = folderWith(t, {
    "package.json": '{"name":"own","version":"3.0.0"}',
    "pnpm-lock.yaml": `packages:\n\n  '@s/a@1.0.0':\n    resolution: {integrity: sha512-${hash(1)}}\n\n  b@2.0.0:\n    resolution: {integrity: sha512-${hash(2)}}\n    engines: {node: '>=1'}\n\n  weak@1.0.0:\n    resolution: {integrity: sha1-aaaa}\n`,
    "x/package.json": '{"name":"b","version":"2.0.0","license":{"type":"MIT"}}',
    "y/package.json": '{"name":"@s/a","version":"1.0.0"}',
    "z/package.json": '{"name":"b","version":"2.0.0","license":"MIT"}',
    "w/package.json": '{"name":"weak","version":"1.0.0","license":"MIT"}',
  });
  const bill = JSON.parse(billOfMaterials(root, ["x", "y", "z"]));
  const node = process.versions.node;
  const library = (name: string, version: string, purl: string, byte: string) => ({
    ...{ type: "library", name, version, purl },
    hashes: [{ alg: "SHA-512", content: byte.repeat(64) }],
  });
  assert.deepEqual(bill, {
    ...{ bomFormat: "CycloneDX", specVersion: "1.5", version: 1 },
    metadata: { component: { type: "application", name: "own", version: "3.0.0" } },
    components: [
      { type: "application", name: "node", version: node, purl: `pkg:generic/node@${node}` },
      library("@s/a", "1.0.0", "pkg:npm/%40s/a@1.0.0", "01"),
      { ...library("b", "2.0.0", "pkg:npm/b@2.0.0", "02"), licenses: [{ expression: "MIT" }] },
    ],
  });
  assert.throws(() => billOfMaterials(root, ["w"]), /no hash of weak@1\.0\.0/);
});

test("folders that are missing come before what is in them, once each", () => {
  const file = (path: string): TarEntry => ({ type: "file", path, content: Buffer.alloc(0) });
  const named: TarEntry = { type: "folder", path: "tmp", mode: 0o1777 };
  const all = withFolders([file("a/b/c"), file("a/b/d"), named, file("tmp/x"), file("e")]);
  assert.deepEqual(
    all.map(({ type, path }) => `${type} ${path}`),
    [...["folder a", "folder a/b", "file a/b/c", "file a/b/d", "folder tmp", "file tmp/x", "file e"]],
  );
  assert.equal(all[4], named);
});

const markdown =
  "[one](../a.md#part) [two [nested]](b/) [three](https://x.test/y) [four](#here) [five](none.md) [six](mailto:a@b)";
test("the links of a document lead to files of the archive, without the part behind #", () =>
  assert.deepEqual(linkedFiles(markdown, "docs/x.md"), ["a.md", "docs/b", "docs/none.md"]));

test("a link to a file that is missing becomes its text, and no other", () =>
  assert.equal(
    withoutDeadLinks(markdown, "docs/x.md", (path) => ["a.md", "docs/b"].includes(path)),
    markdown.replace("[five](none.md)", "five"),
  ));

test("an image has the programs, their code and the licences, not the units and documents", () => {
  const file = (path: string): TarEntry => ({ type: "file", path, content: Buffer.alloc(0) });
  const paths = [
    "bin/kubelet",
    "lib/kubelet.js",
    "libexec/node",
    "licences/node.txt",
    "docs/x.md",
    "systemd/kubelet.service",
    "binary",
  ];
  const entries = ofRelease(paths.map(file));
  assert.deepEqual(
    entries.map(({ path }) => path),
    [
      ...["bin/kubelet", "lib/kubelet.js", "libexec/node", "licences/node.txt"].map((path) => `opt/coxswain/${path}`),
      "usr/bin/kubelet",
    ],
  );
  assert.partialDeepStrictEqual(entries.at(-1), { type: "symlink", target: "/opt/coxswain/bin/kubelet" });
});

test("a line of a bundle is found in the run that it belongs to", () => {
  const sites = { sources: ["a.ts", "b.ts"], runs: [5, 0, 10, 8, 1, 1, 20, 0, 30] };
  for (const [line, want] of [
    [4, undefined],
    [5, { file: "a.ts", line: 10 }],
    [7, { file: "a.ts", line: 12 }],
    [8, { file: "b.ts", line: 1 }],
    [19, { file: "b.ts", line: 12 }],
    [20, { file: "a.ts", line: 30 }],
    [25, { file: "a.ts", line: 35 }],
  ] as const)
    assert.deepEqual(sourceOf(sites, line), want, String(line));
  assert.equal(sourceOf({ sources: [], runs: [] }, 1), undefined);
});

test("what is behind the last byte of an ELF program's segments is removed, whichever segment that is in", () => {
  const program = Buffer.alloc(400, 7);
  program.set([0x7f, 0x45, 0x4c, 0x46, 2, 1]);
  program.writeBigUInt64LE(64n, 32); // the table of segments
  program.writeBigUInt64LE(380n, 40); // the table of sections
  program.writeUInt16LE(60, 54); // bytes of an entry: other than usual
  program.writeUInt16LE(3, 56);
  for (const [index, [offset, bytes]] of (
    [
      [0, 100],
      [250, 50],
      [120, 30],
    ] as const
  ).entries()) {
    program.writeBigUInt64LE(BigInt(offset), 64 + index * 60 + 8);
    program.writeBigUInt64LE(BigInt(bytes), 64 + index * 60 + 32);
  }
  program.writeUInt16LE(9, 60);
  program.writeUInt16LE(8, 62);
  const kept = withoutSymbols(program);
  assert.equal(kept.length, 300);
  assert.deepEqual([kept.readBigUInt64LE(40), kept.readUInt16LE(60), kept.readUInt16LE(62)], [0n, 0, 0]);
  assert.ok(kept.subarray(64).equals(program.subarray(64, 300)));
  assert.equal(program.readUInt16LE(60), 9, "the argument is unchanged");
});
