import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { type TestContext, test } from "node:test";
import { startEtcd } from "@coxswain/apimachinery/testing/etcd";
import { timerUnits } from "../host/timer.ts";
import { EtcdClient } from "./client.ts";
import { clusterToken, memberOf, withMembers } from "./restore.ts";
import { readSnapshot, SnapshotWriter } from "./snapshot-file.ts";
import { listSnapshots, removeSurplus, saveSnapshot, snapshotName, surplus } from "./snapshots.ts";

function aFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "cox-snapshots-"));
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

async function anEtcd(t: TestContext): Promise<EtcdClient> {
  const client = new EtcdClient([(await startEtcd(t)).endpoint]);
  t.after(() => client.close());
  return client;
}

test("a snapshot of a real etcd is complete, and readable only by its owner", async (t) => {
  const path = join(aFolder(t), "a", "s.db");
  const size = await saveSnapshot({ client: await anEtcd(t), path, key: undefined });
  const { digest, ...info } = readSnapshot(path, undefined);
  assert.deepEqual(info, { sizeBytes: size, isSealed: false });
  assert.equal(digest, readFileSync(path).subarray(-32).toString("hex"));
  assert.equal(statSync(path).size, size);
  assert.equal(statSync(path).mode & 0o777, 0o600);
  // The magic number of bbolt in its first page.
  assert.equal(readFileSync(path).readUInt32LE(16), 0xed0cdaed);
});

test("an encrypted snapshot decrypts only with its key", async (t) => {
  const path = join(aFolder(t), "s.db");
  const key = randomBytes(32);
  const size = await saveSnapshot({ client: await anEtcd(t), path, key });
  const pieces: Buffer[] = [];
  const { digest, ...info } = readSnapshot(path, key, (piece) => pieces.push(piece));
  assert.deepEqual(info, { sizeBytes: size, isSealed: true });
  assert.equal(digest, Buffer.concat(pieces).subarray(-32).toString("hex"));
  assert.equal(Buffer.concat(pieces).readUInt32LE(16), 0xed0cdaed);
  assert.throws(() => readSnapshot(path, randomBytes(32)), /cannot be decrypted with this key, or is damaged/);
  assert.throws(() => readSnapshot(path, undefined), /is encrypted: pass --key-file/);
});

for (const key of [undefined, randomBytes(32)])
  test(`a truncated or changed ${key === undefined ? "plain" : "encrypted"} snapshot is refused`, async (t) => {
    const path = join(aFolder(t), "s.db");
    const size = await saveSnapshot({ client: await anEtcd(t), path, key });
    const whole = readFileSync(path);
    const damaged = Buffer.from(whole);
    damaged[size >> 1] = (damaged[size >> 1] as number) ^ 1;
    writeFileSync(path, damaged);
    assert.throws(() => readSnapshot(path, key), { exitCode: 1 });
    writeFileSync(path, whole);
    truncateSync(path, whole.length - 1);
    assert.throws(() => readSnapshot(path, key), { exitCode: 1 });
    truncateSync(path, 10);
    assert.throws(() => readSnapshot(path, key), { exitCode: 1 });
  });

test("when etcd fails, an earlier snapshot of the name is kept and no partial file is left", async (t) => {
  const folder = aFolder(t);
  const path = join(folder, "s.db");
  writeFileSync(path, "earlier");
  const broken = {
    async snapshot(take: (piece: Uint8Array) => void): Promise<void> {
      take(Buffer.alloc(100));
      throw new Error("gone");
    },
  };
  await assert.rejects(saveSnapshot({ client: broken as unknown as EtcdClient, path, key: undefined }), /gone/);
  const short = { snapshot: async (take: (piece: Uint8Array) => void) => take(Buffer.alloc(100)) };
  await assert.rejects(saveSnapshot({ client: short as unknown as EtcdClient, path, key: undefined }), /is incomplete/);
  assert.equal(readFileSync(path, "utf8"), "earlier");
  assert.deepEqual(readdirSync(folder), ["s.db"]);
  const files = (): number => readdirSync("/proc/self/fd").length;
  const open = files();
  for (let i = 0; i < 5; i++)
    await assert.rejects(saveSnapshot({ client: broken as unknown as EtcdClient, path, key: undefined }), /gone/);
  assert.ok(files() < open + 5, "the partial file is closed each time");
});

test("the partial file of an interrupted snapshot is replaced", (t) => {
  const path = join(aFolder(t), "s.db");
  writeFileSync(`${path}.part`, "old");
  new SnapshotWriter(path, undefined).abandon();
  assert.equal(existsSync(`${path}.part`), false);
});

test("the newest snapshots of this machine are kept; files of others are not touched", (t) => {
  const folder = aFolder(t);
  const names = [1, 3, 2].map((day) => snapshotName("m1", Date.UTC(2026, 0, day)));
  assert.equal(names[0], "etcd-m1-20260101T000000Z.db");
  const others = [snapshotName("m10", 0), snapshotName("m1-m1", 0), "etcd-m1-mine.db"];
  assert.deepEqual(surplus([...names, ...others], "m1", 2), [names[0]]);
  assert.deepEqual(surplus(names, "m1", 5), []);
  for (const name of [...names, ...others]) writeFileSync(join(folder, name), "");
  removeSurplus(folder, "m1", 1);
  assert.deepEqual(readdirSync(folder).toSorted(), [names[1], ...others].toSorted());
  assert.equal(listSnapshots(folder).length, 4);
  for (const [i, name] of readdirSync(folder).entries()) utimesSync(join(folder, name), i, i);
  writeFileSync(join(folder, "notes.txt"), "");
  assert.deepEqual(
    listSnapshots(folder).map(({ path, sizeBytes, modifiedMs }) => [basename(path), sizeBytes, modifiedMs]),
    readdirSync(folder)
      .filter((name) => name !== "notes.txt")
      .map((name, i) => [name, 0, i * 1000])
      .toReversed(),
    "the newest first",
  );
  assert.deepEqual(listSnapshots(join(folder, "none")), []);
});

const dropIn = `ExecStart=/usr/bin/etcd \\
  --data-dir=/data \\
  --initial-advertise-peer-urls=https://10.0.0.2:2380 \\
  --initial-cluster=m1=https://10.0.0.1:2380,m2=https://10.0.0.2:2380 \\
  --initial-cluster-state=existing \\
  --name=m2
`;

test("a restored member begins a new cluster with the members that are named", () => {
  assert.deepEqual(memberOf(dropIn), { name: "m2", peerUrl: "https://10.0.0.2:2380", dataDir: "/data" });
  const text = withMembers(dropIn, { m2: "https://10.0.0.2:2380" });
  assert.match(text, /--initial-cluster=m2=https:\/\/10\.0\.0\.2:2380 \\\n {2}--initial-cluster-state=new \\\n/);
  assert.equal(withMembers(text, { m2: "https://10.0.0.2:2380" }), text);
  assert.throws(() => memberOf(undefined), /set up etcd with coxswain init or join first/);
});

test("machines that restore one file together get the same cluster ID; a single machine gets a new one each time", () => {
  const two = { m1: "https://10.0.0.1:2380", m2: "https://10.0.0.2:2380" };
  const digest = "ab".repeat(32);
  assert.equal(clusterToken({ members: two, nowMs: 1 }, digest), clusterToken({ members: two, nowMs: 2 }, digest));
  assert.notEqual(clusterToken({ members: two, nowMs: 1 }, digest), clusterToken({ members: two, nowMs: 1 }, "cd".repeat(32)));
  const { m2, ...one } = two;
  assert.notEqual(clusterToken({ members: one, nowMs: 1 }, digest), clusterToken({ members: one, nowMs: 2 }, digest));
});

test("a timer's command is quoted for systemd", () => {
  const [service, timer] = timerUnits({
    name: "x",
    description: "x",
    onCalendar: "daily",
    delay: "1min",
    words: ["/a", "--dir=/b c"],
  });
  assert.match(service?.content ?? "", /^ExecStart=\/a "--dir=\/b c"$/m);
  assert.deepEqual([service?.path, timer?.path], ["/etc/systemd/system/x.service", "/etc/systemd/system/x.timer"]);
  for (const line of ["OnCalendar=daily", "Persistent=true", "RandomizedDelaySec=1min", "WantedBy=timers.target"])
    assert.match(timer?.content ?? "", new RegExp(`^${line}$`, "m"));
});
