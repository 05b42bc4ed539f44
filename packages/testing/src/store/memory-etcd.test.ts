import assert from "node:assert/strict";
import { test } from "node:test";
import { EtcdError } from "@coxswain/apiserver/storage/etcd/errors";
import { MemoryEtcd } from "./memory-etcd.ts";

const value = (text: string): Buffer => Buffer.from(text);
const read = (etcd: MemoryEtcd, key: string, revision?: number): string | undefined =>
  etcd.range({ key, ...(revision !== undefined && { revision }) }).kvs[0]?.value.toString();

test("a transaction writes when its comparisons hold, under one revision", () => {
  const etcd = new MemoryEtcd();
  const put = (text: string) => ({ type: "put", key: "/a", value: value(text) }) as const;
  const seen: number[] = [];
  etcd.onWrite(({ revision, events }) => seen.push(revision, events.length));
  const made = etcd.txn({ compare: [{ key: "/a", target: "modRevision", value: 0 }], success: [put("1")], failure: [] });
  assert.deepEqual([made.succeeded, made.revision], [true, 2]);
  const late = etcd.txn({
    compare: [{ key: "/a", target: "modRevision", value: 0 }],
    success: [put("2")],
    failure: [{ type: "range", range: { key: "/a" } }],
  });
  assert.deepEqual([late.succeeded, late.revision, late.ranges[0]?.kvs[0]?.value.toString()], [false, 2, "1"]);
  assert.deepEqual(seen, [2, 1]);
});

test("earlier revisions can be read until they are compacted", () => {
  const etcd = new MemoryEtcd();
  const first = etcd.put("/a", value("1"));
  const second = etcd.put("/a", value("2"));
  etcd.txn({ compare: [], success: [{ type: "delete", key: "/a" }], failure: [] });
  assert.deepEqual([read(etcd, "/a"), read(etcd, "/a", second), read(etcd, "/a", first)], [undefined, "2", "1"]);
  assert.deepEqual(
    etcd.since(second).map(({ events }) => events[0]?.type),
    ["put", "delete"],
  );
  etcd.compact(second);
  assert.equal(read(etcd, "/a", second), "2");
  for (const refused of [() => read(etcd, "/a", first), () => etcd.since(first)]) {
    assert.throws(refused, (err) => err instanceof EtcdError && err.reason === "compacted");
  }
});

test("keys come in order, in pages, and below their prefix", () => {
  const etcd = new MemoryEtcd();
  for (const key of ["/b/2", "/a/1", "/b/1", "/c/1"]) etcd.put(key, value(key));
  const page = etcd.range({ key: "/b/", end: "/b0", limit: 1 });
  assert.deepEqual([page.kvs.map(({ key }) => key), page.more, page.count], [["/b/1"], true, 2]);
  assert.deepEqual(
    etcd.entries("/b/").map(({ key }) => key),
    ["/b/1", "/b/2"],
  );
});

test("keys of a lease are deleted when the lease ends", () => {
  const etcd = new MemoryEtcd();
  const lease = etcd.grantLease();
  etcd.txn({ compare: [], success: [{ type: "put", key: "/event", value: value("x"), lease }], failure: [] });
  etcd.put("/a", value("1"));
  etcd.expire(lease);
  assert.deepEqual(
    etcd.entries("/").map(({ key }) => key),
    ["/a"],
  );
});

test("a restored store has the earlier state and assigns later revisions again", () => {
  const etcd = new MemoryEtcd();
  const then = etcd.put("/a", value("1"));
  etcd.put("/a", value("2"));
  etcd.put("/b", value("3"));
  etcd.restore(then);
  assert.deepEqual([read(etcd, "/a"), read(etcd, "/b"), etcd.revision], ["1", undefined, then]);
  assert.equal(etcd.put("/c", value("4")), then + 1);
});
