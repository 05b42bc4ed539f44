import assert from "node:assert/strict";
import { test } from "node:test";
import { realClock } from "@coxswain/apimachinery/clock/clock";
import { isResourceExpired } from "@coxswain/apimachinery/errors/predicates";
import { discardLogger } from "@coxswain/apimachinery/logging/logger";
import { startEtcd } from "@coxswain/apimachinery/testing/etcd";
import { newObjectCodec } from "../object-codec.ts";
import { aConfigMap, follow, runStorageSuite, suiteResource } from "../suite.ts";
import { newEtcdClient } from "./client.ts";
import { newLeases } from "./leases.ts";
import { newEtcdStore } from "./store.ts";

let prefixes = 0;

async function openStore(t: { after(fn: () => void): void }, mediaType = "application/vnd.kubernetes.protobuf") {
  const etcd = await startEtcd();
  const client = newEtcdClient({ servers: [etcd.endpoint] });
  t.after(() => client.close());
  const storage = newEtcdStore({
    client,
    codec: newObjectCodec(suiteResource, mediaType),
    leases: newLeases({ client, clock: realClock }),
    etcdPrefix: `/store-test-${prefixes++}`,
    clock: realClock,
    log: discardLogger,
  });
  const compact = async () => {
    const { revision } = await client.range({ key: "x" });
    await client.compact(revision);
    return revision;
  };
  return { storage, behind: storage, client, compact };
}

runStorageSuite("etcd store", openStore);
runStorageSuite("etcd store with JSON values", (t) => openStore(t, "application/json"));

test("a watch of a compacted revision ends with Expired", async (t) => {
  const { storage, compact } = await openStore(t);
  const { revision } = await storage.create("web/a", aConfigMap("a"));
  await storage.create("web/b", aConfigMap("b"));
  await compact();
  const watch = await follow(storage, { prefix: "", revision: revision - 1 });
  const [event] = await watch.next(1);
  assert.ok(event?.type === "ERROR" && isResourceExpired(event.error), JSON.stringify(event));
  assert.equal(await watch.stream.ready(), false);
});

test("values are stored as protobuf, without resourceVersion, under upstream's key", async (t) => {
  const { storage, client } = await openStore(t);
  await storage.create("web/a", aConfigMap("a", { color: "red" }));
  await storage.guaranteedUpdate("web/a", (e) => ({ ...e?.object(), data: { color: "blue" } }) as never);
  const { kvs } = await client.range({ key: `${storage.prefix}web/a` });
  assert.match(storage.prefix, /^\/store-test-\d+\/configmaps\/$/);
  assert.equal(kvs[0]?.value.subarray(0, 4).toString("latin1"), "k8s\0");
  assert.equal(storage.codec.fromStored(kvs[0].value).metadata.resourceVersion ?? "", "");
});

test("objects with a ttl hang on a lease that several share", async (t) => {
  const { storage, client } = await openStore(t);
  await storage.create("web/a", aConfigMap("a"), { ttlSeconds: 3600 });
  await storage.create("web/b", aConfigMap("b"), { ttlSeconds: 3600 });
  await storage.create("web/c", aConfigMap("c"));
  const { kvs } = await client.range({ key: storage.prefix, end: `${storage.prefix.slice(0, -1)}0` });
  const [a, b, c] = kvs.map((kv) => kv.lease);
  assert.notEqual(a, 0n);
  assert.equal(a, b);
  assert.equal(c, 0n);
});
