import assert from "node:assert/strict";
import { connect as connectTcp, type Socket } from "node:net";
import { test } from "node:test";
import { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import { freePort, startEtcd } from "@coxswain/apimachinery/testing/etcd";
import { startTlsEtcd } from "../../testing/tls-etcd.ts";
import { type EtcdClient, newEtcdClient } from "./client.ts";
import { compactOnce } from "./compactor.ts";
import { EtcdError, statusErrorOf } from "./errors.ts";
import { endOfPrefix } from "./wire.ts";

let prefixes = 0;

async function aClient(t: { after(fn: () => void): void }): Promise<{ client: EtcdClient; prefix: string }> {
  const etcd = await startEtcd();
  const client = newEtcdClient({ servers: [etcd.endpoint] });
  t.after(() => client.close());
  return { client, prefix: `/client-test-${prefixes++}/` };
}

const reason = (wanted: string) => (err: unknown) => err instanceof EtcdError && err.reason === wanted;

test("bytes of any value and unicode keys come back as they went", async (t) => {
  const { client, prefix } = await aClient(t);
  const value = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
  const revision = await client.put(`${prefix}schlüssel-🔑`, value);
  const { kvs, count, more } = await client.range({ key: prefix, end: endOfPrefix(prefix) });
  assert.deepEqual([kvs[0]?.key, kvs[0]?.modRevision, count, more], [`${prefix}schlüssel-🔑`, revision, 1, false]);
  assert.deepEqual(kvs[0]?.value, value);
});

test("ranges page, count and read the past", async (t) => {
  const { client, prefix } = await aClient(t);
  const revisions: number[] = [];
  for (const name of ["a", "b", "c"]) revisions.push(await client.put(prefix + name, Buffer.from(name)));
  const end = endOfPrefix(prefix);
  const page = await client.range({ key: prefix, end, limit: 2 });
  assert.deepEqual([page.kvs.map((kv) => kv.key.slice(prefix.length)), page.more, page.count], [["a", "b"], true, 3]);
  const past = await client.range({ key: prefix, end, revision: revisions[1] });
  assert.deepEqual(
    past.kvs.map((kv) => String(kv.value)),
    ["a", "b"],
  );
  assert.equal((await client.range({ key: prefix, end, countOnly: true })).count, 3);
  await assert.rejects(client.range({ key: prefix, revision: (revisions[2] as number) + 1000 }), reason("future-revision"));
});

test("a transaction writes when its comparison holds and reads when it does not", async (t) => {
  const { client, prefix } = await aClient(t);
  const key = `${prefix}a`;
  const write = (modRevision: number, value: string) =>
    client.txn({
      compare: [{ key, target: "modRevision", value: modRevision }],
      success: [{ type: "put", key, value: Buffer.from(value) }],
      failure: [{ type: "range", range: { key } }],
    });
  const first = await write(0, "1");
  assert.equal(first.succeeded, true);
  const second = await write(0, "2");
  assert.equal(second.succeeded, false);
  assert.deepEqual([second.ranges[0]?.kvs[0]?.modRevision, String(second.ranges[0]?.kvs[0]?.value)], [first.revision, "1"]);
  assert.equal((await write(first.revision, "2")).succeeded, true);
});

test("a value beyond etcd's limit is 413 for the client of the API", async (t) => {
  const { client, prefix } = await aClient(t);
  for (const sizeBytes of [1.6 * 1024 * 1024, 8 * 1024 * 1024]) {
    const err = await client.put(`${prefix}big`, Buffer.alloc(sizeBytes)).then(
      () => undefined,
      (err: unknown) => err,
    );
    assert.ok(reason("too-large")(err), String(err));
    const status = statusErrorOf(err);
    assert.ok(status instanceof StatusError && status.code === 413);
  }
});

test("values of many MiB are read in one answer", async (t) => {
  const { client, prefix } = await aClient(t);
  for (let i = 0; i < 10; i++) await client.put(`${prefix}${i}`, Buffer.alloc(1024 * 1024, i));
  const { kvs } = await client.range({ key: prefix, end: endOfPrefix(prefix) });
  assert.equal(
    kvs.reduce((sum, kv) => sum + kv.value.length, 0),
    10 * 1024 * 1024,
  );
});

test("calls go on with another member when one is dead", async (t) => {
  const etcd = await startEtcd();
  const dead = `http://127.0.0.1:${await freePort()}`;
  for (let i = 0; i < 6; i++) {
    const client = newEtcdClient({ servers: [dead, etcd.endpoint, dead] });
    t.after(() => client.close());
    await client.put(`/failover-${i}`, Buffer.from("1"));
    assert.equal((await client.range({ key: `/failover-${i}` })).kvs.length, 1);
    assert.notEqual(await client.grantLease(60), 0n);
  }
});

test("without any member a call fails at its deadline, as 504 or 503", async (t) => {
  const client = newEtcdClient({ servers: [`http://127.0.0.1:${await freePort()}`], deadlineMs: 300 });
  t.after(() => client.close());
  const err = await client.put("/a", Buffer.from("1")).then(
    () => undefined,
    (err: unknown) => statusErrorOf(err),
  );
  assert.ok(err instanceof StatusError && (err.code === 504 || err.code === 503), String(err));
});

test("a call that is retried ends when the client is closed", { timeout: 300_000 }, async () => {
  const client = newEtcdClient({ servers: [`http://127.0.0.1:${await freePort()}`], deadlineMs: 3_600_000 });
  const ended = assert.rejects(client.range({ key: "/a" }), reason("unsent"));
  client.close();
  await ended;
});

test("API servers that compact together agree: one does, the others learn", async (t) => {
  const { client, prefix } = await aClient(t);
  // The key is shared by all tests of this etcd: read its current version first.
  let mine = await compactOnce(client, { version: -1, revision: 0, compacted: 0 });
  let others = mine;
  const old = await client.put(`${prefix}a`, Buffer.from("1"));
  await client.put(`${prefix}a`, Buffer.from("2"));
  mine = await compactOnce(client, { ...mine, revision: 0 });
  others = await compactOnce(client, { ...others, revision: 0 });
  assert.equal(others.version, mine.version);
  await client.range({ key: `${prefix}a`, revision: old });
  const upTo = mine.revision;
  mine = await compactOnce(client, mine);
  await assert.rejects(client.range({ key: `${prefix}a`, revision: old }), reason("compacted"));
  others = await compactOnce(client, others);
  assert.equal(others.version, mine.version);
  assert.deepEqual([mine.compacted, others.compacted], [upTo, upTo]);
});

test("TLS with client certificates", async (t) => {
  const etcd = await startTlsEtcd(t, ["127.0.0.1"]);
  const servers = [`https://127.0.0.1:${etcd.port}`];
  const ca = Buffer.from(etcd.ca);
  const pair = { cert: Buffer.from(etcd.cert), key: Buffer.from(etcd.key) };
  const client = newEtcdClient({ servers, ca, ...pair, deadlineMs: 20_000 });
  t.after(() => client.close());
  await client.put("/a", Buffer.from("1")); // waits for etcd to listen
  assert.match((await client.status(0)).version, /^3\./);
  const stranger = newEtcdClient({ servers, ca, deadlineMs: 500 });
  t.after(() => stranger.close());
  await assert.rejects(stranger.range({ key: "/a" }), EtcdError);
});

test("with a dialer of the caller every call uses it", async (t) => {
  const etcd = await startEtcd();
  const port = Number(new URL(etcd.endpoint).port);
  const made: Socket[] = [];
  const connect = async (host: string): Promise<Socket> => {
    assert.equal(host, "192.0.2.9"); // TEST-NET-1, not routed
    const socket = connectTcp(port, "127.0.0.1");
    made.push(socket);
    return socket;
  };
  const client = newEtcdClient({ servers: [`http://192.0.2.9:${port}`], connect });
  t.after(() => client.close());
  const revision = await client.put("/own-way", Buffer.from("1"));
  assert.match((await client.status(0)).version, /^3\./);
  assert.equal((await client.members()).length, 1);
  await client.compact(revision);
  assert.equal(made.length, 1);
  assert.match((await client.statusAt(`http://192.0.2.9:${port}`)).version, /^3\./);
  assert.equal(made.length, 2);
});
