import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { decodeWatch, encodeWatchCreate } from "@coxswain/apiserver/storage/etcd/wire";
import { DirectEtcdClient } from "./direct-client.ts";
import { MemoryEtcd } from "./memory-etcd.ts";

/** A client with one watch of `/a`, whose messages and end are recorded. */
async function watching() {
  const clock = newFakeClock();
  const etcd = new MemoryEtcd();
  const client = new DirectEtcdClient(etcd, clock);
  const seen: string[] = [];
  const stream = client.openWatch(undefined, {
    message(bytes) {
      const { created, events } = decodeWatch(bytes);
      seen.push(created ? "created" : events.map(({ kv }) => `${kv.key} ${kv.value}`).join());
    },
    ended: (err) => void seen.push(`ended: ${(err as { reason?: string } | undefined)?.reason} ${err?.message}`),
  });
  stream.write(encodeWatchCreate({ key: "/a", startRevision: 0, prevKv: false }));
  await settle();
  return { clock, etcd, client, stream, seen };
}

test("messages of a watch that lags arrive late, together and in order", async () => {
  const { clock, etcd, client, seen } = await watching();
  client.lagMs = 1_000;
  etcd.put("/a", Buffer.from("1"));
  await clock.advance(999);
  etcd.put("/a", Buffer.from("2"));
  assert.deepEqual(seen, ["created"]);
  await clock.advance(1);
  assert.deepEqual(seen, ["created", "/a 1", "/a 2"]);
  client.lagMs = 0;
  etcd.put("/a", Buffer.from("3"));
  await settle();
  assert.equal(seen.at(-1), "/a 3");
});

test("watches that are broken end with an error, once, and leave nothing at the store", async () => {
  const { etcd, client, seen } = await watching();
  etcd.put("/a", Buffer.from("lost"));
  client.breakWatches();
  client.breakWatches();
  etcd.put("/a", Buffer.from("after"));
  await settle();
  assert.deepEqual(seen, ["created", "ended: unavailable the stream was lost"]);
});

test("a watch that is cancelled hears nothing more, not even that it was broken", async () => {
  const { etcd, client, stream, seen } = await watching();
  etcd.put("/a", Buffer.from("1"));
  stream.cancel();
  client.breakWatches();
  stream.write(encodeWatchCreate({ key: "/a", startRevision: 1, prevKv: false }));
  await settle();
  assert.deepEqual(seen, ["created"]);
});

test("a lease ends after its time, and not any more when its client was closed", async () => {
  const { clock, etcd, client, seen } = await watching();
  const put = async (key: string, seconds: number) => {
    const lease = await client.grantLease(seconds);
    await client.txn({ compare: [], success: [{ type: "put", key, value: Buffer.from("x"), lease }], failure: [] });
  };
  await put("/short", 1);
  await put("/long", 3);
  await clock.advance(1_000);
  assert.deepEqual(
    etcd.entries("/").map(({ key }) => key),
    ["/long"],
  );
  client.close();
  etcd.put("/a", Buffer.from("1"));
  await clock.advance(5_000);
  assert.deepEqual([etcd.entries("/long").length, seen], [1, ["created"]]);
});
