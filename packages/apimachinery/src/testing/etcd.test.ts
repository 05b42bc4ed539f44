import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { freePort, startEtcd, startOwnEtcd } from "./etcd.ts";

test("starts one etcd for all who share it", async () => {
  const [first, second] = await Promise.all([startEtcd(), startEtcd()]);
  assert.equal(first.endpoint, second.endpoint);
  const answer = (await (await fetch(`${first.endpoint}/version`)).json()) as { etcdserver?: string };
  assert.match(answer.etcdserver ?? "", /^3\./);
});

test("stops an own etcd with its test", async (t) => {
  const own = await startOwnEtcd(t);
  await own.stop();
  await assert.rejects(fetch(`${own.endpoint}/health`));
});

test("removes data that killed processes have left, and no one else's", async (t) => {
  const ended = spawnSync("true").pid;
  const folders = [`cox-etcd-${ended}-abc`, `cox-etcd-${process.ppid}-abc`, "cox-etcd-other"].map((name) => join(tmpdir(), name));
  t.after(() => {
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  });
  for (const folder of folders) mkdirSync(folder, { recursive: true });
  await startOwnEtcd(t);
  assert.deepEqual(
    folders.map((folder) => existsSync(folder)),
    [false, true, true],
  );
});

test("a free port is assigned once and is outside of the kernel's ephemeral range", async () => {
  const ports = await Promise.all(Array.from({ length: 50 }, freePort));
  assert.equal(new Set(ports).size, 50);
  assert.ok(Math.max(...ports) < 32_768, String(ports));
});
