import assert from "node:assert/strict";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { startOwnEtcd } from "@coxswain/apimachinery/testing/etcd";
import { hasNoEntries, removeUnusedMember } from "./etcd-data.ts";

const logOf = (dataDir: string): string => join(dataDir, "member", "wal", "0000000000000000-0000000000000000.wal");

/** The data of an etcd that has started once. */
async function usedData(t: TestContext): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), "cox-etcd-data-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const used = join(folder, "used");
  const etcd = await startOwnEtcd(t, [`--data-dir=${used}`]);
  await etcd.stop();
  return used;
}

/** The WAL of an etcd that was killed before its first write: the records of checksum, metadata and snapshot, then zeros. */
function unusedLog(log: Buffer): Buffer {
  let at = 0;
  for (let record = 0; record < 3; record++) at += 8 + log.readUIntLE(at, 6) + (log.readUInt8(at + 7) & 0x7);
  return Buffer.concat([log.subarray(0, at), Buffer.alloc(log.length - at)]);
}

test("a member that was killed before its first write is removed, and etcd starts there; one that has written is kept", async (t) => {
  const used = await usedData(t);
  const unused = `${used}-not`;
  cpSync(used, unused, { recursive: true });
  writeFileSync(logOf(unused), unusedLog(readFileSync(logOf(unused))));

  assert.equal(removeUnusedMember(used), false);
  assert.ok(existsSync(logOf(used)));
  assert.equal(removeUnusedMember(unused), true);
  assert.equal(removeUnusedMember(unused), false, "nothing is left to remove");
  await startOwnEtcd(t, [`--data-dir=${unused}`]); // rejects when it does not become healthy
});

test("a folder with another log or a snapshot is not treated as unused", async (t) => {
  const unused = await usedData(t);
  writeFileSync(logOf(unused), unusedLog(readFileSync(logOf(unused))));
  for (const file of ["wal/0000000000000001-0000000000000009.wal", "snap/0000000000000002-0000000000000009.snap"]) {
    const path = join(unused, "member", file);
    writeFileSync(path, "");
    assert.equal(removeUnusedMember(unused), false, file);
    rmSync(path);
  }
  assert.equal(removeUnusedMember(join(unused, "nowhere")), false);
  assert.equal(removeUnusedMember(unused), true);
});

/** One record: its length and type, with an even number of bytes. */
const record = (type: number, length = 8): Buffer => {
  const bytes = Buffer.alloc(8 + length);
  bytes.writeUIntLE(length, 0, 6);
  bytes.writeUInt8(0x08, 8);
  bytes.writeUInt8(type, 9);
  return bytes;
};
const zeros = Buffer.alloc(64);

for (const { name, log, want } of [
  { name: "only the records of its creation", log: [record(4), record(1, 24), record(5), zeros], want: true },
  { name: "an entry", log: [record(4), record(1), record(5), record(2), zeros], want: false },
  { name: "a state", log: [record(4), record(1), record(5), record(3), zeros], want: false },
  { name: "zeros only", log: [zeros], want: false },
  { name: "nothing", log: [], want: false },
  { name: "no zeros where the part that was read ends", log: [record(4), record(1)], want: false },
  {
    name: "a record that is longer than the part that was read",
    log: [record(4), record(1, 9_000).subarray(0, 64)],
    want: false,
  },
  { name: "something else", log: [Buffer.from("not a log of etcd's, but some text of more than 16 bytes")], want: false },
])
  test(`a log with ${name} ${want ? "has no entries" : "may have entries"}`, () =>
    assert.equal(hasNoEntries(Buffer.concat(log)), want));
