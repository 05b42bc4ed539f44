import assert from "node:assert/strict";
import { test } from "node:test";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { newEtcdChannel } from "@coxswain/apiserver/storage/etcd/channel";
import { newEtcdClient } from "@coxswain/apiserver/storage/etcd/client";
import { newLeases } from "@coxswain/apiserver/storage/etcd/leases";
import { EtcdStore } from "@coxswain/apiserver/storage/etcd/store";
import { newObjectCodec } from "@coxswain/apiserver/storage/object-codec";
import { runStorageSuite } from "@coxswain/apiserver/storage/suite";
import { suiteResource, unlimitedEntries } from "@coxswain/apiserver/storage/testing";
import { MemoryEtcd } from "../memory-etcd.ts";
import { serveEtcd } from "./etcd-server.ts";

const host = "127.0.0.1";

/** The etcd client of API servers, over a socket. */
async function served(t: { after(fn: () => unknown): void }) {
  const etcd = new MemoryEtcd();
  const server = await serveEtcd(etcd, { host, port: 0 });
  const client = newEtcdClient({ servers: [`http://${host}:${server.port}`] });
  t.after(() => {
    client.close();
    return server.close();
  });
  return { etcd, server, client };
}

runStorageSuite("store over served memory", async (t) => {
  const { etcd, client } = await served(t);
  const storage = new EtcdStore({
    turns: new Turns(),
    client,
    codec: newObjectCodec(suiteResource, "application/vnd.kubernetes.protobuf", unlimitedEntries()),
    leases: newLeases({ client, clock: realClock }),
    etcdPrefix: "/registry",
    clock: realClock,
    log: discardLogger,
  });
  const compact = async (): Promise<number> => {
    const { revision } = etcd;
    await client.compact(revision);
    return revision;
  };
  return { storage, behind: storage, compact };
});

test("the requests of API servers besides keys are answered: status, members, leases, health, version", async (t) => {
  const { client, etcd, server } = await served(t);
  assert.equal((await client.status(0)).version, "3.5.13");
  assert.deepEqual(await client.members(), [{ id: 1n, clientUrls: [`http://${host}:${server.port}`] }]);
  const lease = await client.grantLease(1);
  await client.txn({ compare: [], success: [{ type: "put", key: "/leased", value: Buffer.from("x"), lease }], failure: [] });
  const { kvs } = await client.range({ key: "/leased" });
  assert.equal(kvs[0]?.lease, lease);
  await waitFor(() => etcd.entries("/leased").length === 0);
  for (const [path, want] of [
    ["/health", '{"health":"true","reason":""}'],
    ["/version", '{"etcdserver":"3.5.13","etcdcluster":"3.5.0"}'],
  ]) {
    assert.equal(await (await fetch(`http://${host}:${server.port}${path}`)).text(), want);
  }
  const other = await fetch(`http://${host}:${server.port}/constructor`);
  assert.deepEqual([other.status, await other.text()], [404, "404 page not found\n"]);
});

test("a transaction that fails answers with its other operations, and errors have etcd's texts", async (t) => {
  const { client } = await served(t);
  await client.put("/a", Buffer.from("1"));
  const { succeeded, ranges } = await client.txn({
    compare: [{ key: "/a", target: "modRevision", value: 99 }],
    success: [{ type: "delete", key: "/a" }],
    failure: [{ type: "range", range: { key: "/a" } }],
  });
  assert.deepEqual([succeeded, ranges[0]?.kvs[0]?.value.toString()], [false, "1"]);
  await client.compact(2);
  await assert.rejects(client.range({ key: "/a", revision: 1 }), /mvcc: required revision has been compacted/);
  await assert.rejects(client.range({ key: "/a", revision: 100 }), /mvcc: required revision is a future revision/);
});

test("calls that API servers do not use are answered, or refused by name", async (t) => {
  const { client, etcd, server } = await served(t);
  const channel = newEtcdChannel(`http://${host}:${server.port}`, {});
  t.after(() => channel.close());
  const keyOf = (key: string): Buffer => Buffer.concat([Buffer.from([10, key.length]), Buffer.from(key)]);
  await client.put("/a", Buffer.from("1"));
  /** @returns the revision, and how many keys are gone */
  const remove = async (key: string): Promise<[number, number | undefined]> => {
    const answer = await channel.unary("/etcdserverpb.KV/DeleteRange", keyOf(key), 10_000);
    return [etcd.revision, answer.at(-1)];
  };
  assert.deepEqual(await remove("/a"), [3, 1]);
  assert.deepEqual(await remove("/a"), [3, 0]);
  const lease = await client.grantLease(60);
  await client.txn({ compare: [], success: [{ type: "put", key: "/l", value: Buffer.from("x"), lease }], failure: [] });
  await channel.unary("/etcdserverpb.Lease/LeaseRevoke", Buffer.from([8, Number(lease)]), 10_000);
  assert.deepEqual(etcd.entries("/"), []);
  for (const [path, bytes, code, details] of [
    [
      "/etcdserverpb.KV/DeleteRange",
      Buffer.concat([keyOf("/a"), Buffer.from([18, 1, 98])]),
      12,
      "etcd in memory: a range of keys cannot be deleted",
    ],
    ["/etcdserverpb.Auth/AuthEnable", Buffer.alloc(0), 12, "unknown method /etcdserverpb.Auth/AuthEnable"],
    ["/etcdserverpb.KV/Compact", Buffer.from([8, 99]), 11, "etcdserver: mvcc: required revision is a future revision"],
  ] as const) {
    await assert.rejects(channel.unary(path, bytes, 10_000), { code, details });
  }
});

test("a lease is kept alive over a stream, which tells its time, and none for one that is gone", async (t) => {
  const { client, server } = await served(t);
  const channel = newEtcdChannel(`http://${host}:${server.port}`, {});
  t.after(() => channel.close());
  const lease = await client.grantLease(60);
  const answers: number[][] = [];
  const stream = channel.stream("/etcdserverpb.Lease/LeaseKeepAlive", {
    message: (bytes) => void answers.push([...bytes.subarray(-4)]),
    ended() {},
  });
  for (const id of [Number(lease), 99]) stream.write(Buffer.from([8, id]));
  await waitFor(() => answers.length === 2);
  stream.cancel();
  assert.deepEqual(answers, [
    [16, Number(lease), 24, 60],
    [16, 99, 24, 0],
  ]);
});

test("two watches have their own ids on one stream, and one may end", async (t) => {
  const etcd = new MemoryEtcd();
  const server = await serveEtcd(etcd, { host, port: 0 });
  t.after(() => server.close());
  const { ServedWatch } = await import("../served-watch.ts");
  const { decodeWatch, encodeWatchCreate } = await import("@coxswain/apiserver/storage/etcd/wire");
  const seen: string[] = [];
  const watch = new ServedWatch(etcd, {
    send(_, message) {
      const { watchId, created, canceled, events } = decodeWatch(message);
      seen.push(`${watchId} ${created ? "created" : canceled ? "canceled" : events.map(({ kv }) => kv.key).join()}`);
    },
    broken() {},
  });
  for (const key of ["/a", "/b"]) watch.request(encodeWatchCreate({ key, startRevision: 0, prevKv: false }));
  etcd.put("/b", Buffer.from("x"));
  watch.request(Buffer.from([18, 2, 8, 1]));
  etcd.put("/b", Buffer.from("y"));
  etcd.put("/a", Buffer.from("z"));
  watch.close();
  etcd.put("/a", Buffer.from("z"));
  assert.deepEqual(seen, ["0 created", "1 created", "1 /b", "1 canceled", "0 /a"]);
});
