import assert from "node:assert/strict";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { openArchive } from "./image-archive.ts";

/** Larger than one read of a file stream. */
const content = Buffer.from(Array.from({ length: 300_000 }, (_, i) => (i * i) % 251));

test("an archive is read as it is, and unpacked when gzip has packed it", async (t) => {
  const write = await newFolder(t);
  const packed = gzipSync(content);
  for (const [what, bytes] of [
    ["plain", content],
    ["packed", packed],
    ["packed in two members", Buffer.concat([gzipSync(content.subarray(0, 1000)), gzipSync(content.subarray(1000))])],
  ] as const) {
    assert.ok(content.equals(await buffer(await openArchive(await write(bytes)))), what);
  }
  assert.equal((await buffer(await openArchive(await write(Buffer.alloc(0))))).length, 0, "an empty file");
});

test("a truncated, damaged or unreadable archive is an error", async (t) => {
  const write = await newFolder(t);
  const packed = gzipSync(content);
  await assert.rejects(buffer(await openArchive(await write(packed.subarray(0, packed.length - 20)))), /unexpected end of file/);
  const damaged = Buffer.from(packed);
  damaged.fill(0, 100, 200);
  await assert.rejects(buffer(await openArchive(await write(damaged))));
  const open = (await readdir("/proc/self/fd")).length;
  for (let i = 0; i < 5; i++) await assert.rejects(openArchive(tmpdir()), { message: /^cannot read .*: EISDIR/ });
  assert.ok((await readdir("/proc/self/fd")).length < open + 5, "it is closed each time");
});

async function newFolder(t: { after(fn: () => Promise<void>): void }): Promise<(bytes: Buffer) => Promise<string>> {
  const folder = await mkdtemp(join(tmpdir(), "cox-archive-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  return async (bytes) => {
    const file = join(folder, "image.tar");
    await writeFile(file, bytes);
    return file;
  };
}
