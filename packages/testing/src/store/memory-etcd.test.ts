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

test("a read counts all keys of its range, and returns as much of them as was asked for", () => {
  const etcd = new MemoryEtcd([{ key: "/a/1", value: value("x") }]);
  for (const key of ["/a/2", "/a/3", "/b"]) etcd.put(key, value(key));
  const of = (more: object) => {
    const { kvs, ...rest } = etcd.range({ key: "/a/", end: "/a0", ...more });
    return { ...rest, kvs: kvs.map(({ key, value: bytes }) => `${key}=${bytes}`) };
  };
  const common = { revision: 5, count: 3 };
  assert.deepEqual(of({}), { ...common, more: false, kvs: ["/a/1=x", "/a/2=/a/2", "/a/3=/a/3"] });
  assert.deepEqual(of({ limit: 3 }), { ...common, more: false, kvs: ["/a/1=x", "/a/2=/a/2", "/a/3=/a/3"] });
  assert.deepEqual(of({ limit: 2, keysOnly: true }), { ...common, more: true, kvs: ["/a/1=", "/a/2="] });
  assert.deepEqual(of({ countOnly: true }), { ...common, more: false, kvs: [] });
  assert.deepEqual(of({ revision: 3 }), { revision: 5, count: 2, more: false, kvs: ["/a/1=x", "/a/2=/a/2"] });
  assert.throws(
    () => of({ revision: 6 }),
    (err) => err instanceof EtcdError && err.reason === "future-revision",
  );
  assert.deepEqual(etcd.range({ key: "/a" }).kvs, [], "one key is read by its whole name");
});

test("a key counts its versions from its creation, and anew after it was deleted", () => {
  const etcd = new MemoryEtcd();
  const lease = etcd.grantLease();
  const put = (more: object = {}) =>
    etcd.txn({ compare: [], success: [{ type: "put", key: "/a", value: value("x"), ...more }], failure: [] });
  const state = () => {
    const { createRevision, modRevision, version, lease: of } = etcd.range({ key: "/a" }).kvs[0] ?? assert.fail("no key");
    return [createRevision, modRevision, version, of];
  };
  put({ lease });
  assert.deepEqual(state(), [2, 2, 1, lease]);
  put();
  assert.deepEqual(state(), [2, 3, 2, 0n], "a write without a lease takes the key off it");
  etcd.expire(lease);
  assert.equal(etcd.revision, 3, "nothing was deleted");
  etcd.txn({ compare: [{ key: "/a", target: "version", value: 2 }], success: [{ type: "delete", key: "/a" }], failure: [] });
  put();
  assert.deepEqual(state(), [5, 5, 1, 0n]);
  const missing = etcd.txn({ compare: [], success: [{ type: "delete", key: "/none" }], failure: [] });
  assert.equal(missing.revision, 5, "deleting what is not there is no change");
});

test("compaction keeps what can still be read, and is refused twice or ahead of time", () => {
  const etcd = new MemoryEtcd();
  etcd.put("/a", value("1"));
  etcd.put("/b", value("1"));
  etcd.put("/a", value("2"));
  etcd.txn({ compare: [], success: [{ type: "delete", key: "/b" }], failure: [] });
  const reasonOf = (act: () => unknown): string => {
    try {
      act();
    } catch (err) {
      return (err as EtcdError).reason;
    }
    return "none";
  };
  assert.equal(
    reasonOf(() => etcd.compact(6)),
    "future-revision",
  );
  etcd.compact(5);
  assert.deepEqual(
    [etcd.compacted, reasonOf(() => etcd.compact(5)), reasonOf(() => etcd.compact(4))],
    [5, "compacted", "compacted"],
  );
  assert.deepEqual([read(etcd, "/a", 5), read(etcd, "/b", 5)], ["2", undefined]);
  assert.deepEqual(
    etcd.since(5).map(({ revision }) => revision),
    [5],
  );
  assert.equal(etcd.put("/b", value("2")), 6);
  assert.equal(etcd.range({ key: "/b" }).kvs[0]?.version, 1);
});

test("a copy has the keys and numbers of its original, is compacted, and is independent from then on", () => {
  const etcd = new MemoryEtcd();
  const heard: string[] = [];
  const leave = etcd.onWrite(({ revision }) => heard.push(`original ${revision}`));
  etcd.put("/a", value("1"));
  const lease = etcd.grantLease();
  const copy = etcd.fork();
  copy.put("/a", value("copy"));
  etcd.put("/b", value("2"));
  leave();
  etcd.put("/b", value("3"));
  assert.deepEqual(heard, ["original 2", "original 3"]);
  assert.deepEqual([read(etcd, "/a"), read(copy, "/a"), read(copy, "/b")], ["1", "copy", undefined]);
  assert.deepEqual([copy.revision, copy.compacted, etcd.compacted], [3, 2, 0]);
  assert.equal(copy.grantLease(), lease + 1n);
  assert.deepEqual([copy.fork().fork().revision, new MemoryEtcd().fork().revision], [3, 1]);
});

test("who listens for restores hears of them until it leaves", () => {
  const etcd = new MemoryEtcd();
  let restored = 0;
  const leave = etcd.onRestore(() => restored++);
  etcd.put("/a", value("1"));
  etcd.restore(1);
  leave();
  etcd.restore(1);
  assert.deepEqual([restored, etcd.entries("/"), etcd.since(1)], [1, [], []]);
});
