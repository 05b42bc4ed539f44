import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { SnapshotWriter } from "../etcd/snapshot-file.ts";
import { etcdCommand } from "./etcd.ts";

function aFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "cox-etcd-"));
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** Runs `etcd snapshot …`. @returns the lines that it printed */
async function snapshot(t: TestContext, ...words: readonly string[]): Promise<string[]> {
  const lines: string[] = [];
  const log = t.mock.method(console, "log", (line: string) => lines.push(line));
  await etcdCommand({ home: "/opt/cox" })
    .parseAsync(["snapshot", ...words], { from: "user" })
    .finally(() => log.mock.restore());
  return lines;
}

/** A snapshot of 100 bytes and their checksum. */
function writeSnapshot(path: string, key?: Buffer): void {
  const content = randomBytes(100);
  const writer = new SnapshotWriter(path, key);
  writer.write(Buffer.concat([content, createHash("sha256").update(content).digest()]));
  writer.finish();
}

test("a snapshot is verified with the key of its file, whose digits may be upper case and end with a line", async (t) => {
  const folder = aFolder(t);
  const [plain, sealed, keyFile] = ["plain.db", "sealed.db", "key"].map((name) => join(folder, name)) as [string, string, string];
  const key = randomBytes(32);
  writeSnapshot(plain);
  writeSnapshot(sealed, key);
  writeFileSync(keyFile, `${key.toString("hex").toUpperCase()}\n`);
  assert.deepEqual(await snapshot(t, "verify", plain), [`${plain} is whole: 132 bytes`]);
  assert.deepEqual(await snapshot(t, "verify", sealed, "--key-file", keyFile), [`${sealed} is whole: 132 bytes, sealed`]);
  await assert.rejects(snapshot(t, "verify", sealed), { message: `${sealed} is encrypted: pass --key-file`, exitCode: 1 });
  for (const digits of ["0".repeat(63), "0".repeat(65), "g".repeat(64)]) {
    writeFileSync(keyFile, digits);
    await assert.rejects(snapshot(t, "verify", plain, "--key-file", keyFile), {
      message: `${keyFile} does not have 64 hexadecimal digits`,
      exitCode: 2,
    });
  }
  await assert.rejects(snapshot(t, "verify", plain, "--key-file", folder), {
    message: /^cannot read the key: EISDIR/,
    exitCode: 2,
  });
});

test("the snapshots of a folder are listed with size and time, the newest first", async (t) => {
  const folder = aFolder(t);
  assert.deepEqual(await snapshot(t, "list", "--dir", folder), [`there are no snapshots in ${folder}`]);
  for (const [index, name] of ["a.db", "b.db"].entries()) {
    writeFileSync(join(folder, name), "x".repeat(index + 1));
    utimesSync(join(folder, name), 1_767_225_600 + index, 1_767_225_600 + index);
  }
  assert.deepEqual(
    (await snapshot(t, "list", "--dir", folder)).map((line) => line.split(/ {3,}/)),
    [
      ["FILE", "SIZE", "TIME"],
      [join(folder, "b.db"), "2", "2026-01-01T00:00:01Z"],
      [join(folder, "a.db"), "1", "2026-01-01T00:00:00Z"],
    ],
  );
  const file = join(folder, "a.db");
  await assert.rejects(snapshot(t, "list", "--dir", file), { message: new RegExp(`^cannot read ${file}: ENOTDIR`) });
});

test("a dry run of save names the new file of this machine, or the one that is given", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: Date.parse("2026-01-02T03:04:05Z") });
  const folder = aFolder(t);
  const keyFile = join(folder, "key");
  writeFileSync(keyFile, "0".repeat(64));
  const machine = hostname().toLowerCase();
  const dry = ["save", "--dry-run", "--dir", folder];
  assert.deepEqual(await snapshot(t, ...dry, "--keep", "2"), [`would write ${folder}/etcd-${machine}-20260102T030405Z.db`]);
  assert.deepEqual(await snapshot(t, ...dry, "/x.db", "--key-file", keyFile), ["would write /x.db, sealed"]);
  await assert.rejects(snapshot(t, ...dry, "/x.db", "--keep", "2"), {
    message: "--keep is for a folder, not for a file",
    exitCode: 2,
  });
});

test("a dry run of an end of the schedule names what it would remove", async (t) => {
  assert.deepEqual(
    await snapshot(t, "schedule", "--remove", "--dry-run"),
    ["service", "timer"].map((kind) => `would remove /etc/systemd/system/coxswain-etcd-snapshot.${kind}`),
  );
  const folder = aFolder(t);
  mkdirSync(join(folder, "key"));
  await assert.rejects(snapshot(t, "schedule", "--key-file", join(folder, "key")), { message: /^cannot read the key: / });
});
