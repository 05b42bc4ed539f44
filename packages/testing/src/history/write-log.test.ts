import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryEtcd } from "../store/memory-etcd.ts";
import { WriteLog } from "./write-log.ts";

test("a write is kept with its time, its author, and the value before; a deletion has no value", () => {
  const etcd = new MemoryEtcd([{ key: "/before", value: Buffer.from("0") }]);
  let now = 10;
  let by: { by: string; method: string; path: string } | undefined = { by: "test", method: "POST", path: "/x" };
  const log = new WriteLog(
    etcd,
    () => now,
    () => by,
  );
  etcd.put("/a", Buffer.from("1"));
  now = 20;
  by = undefined;
  etcd.txn({
    compare: [],
    success: [
      { type: "put", key: "/b", value: Buffer.from("2") },
      { type: "delete", key: "/a" },
    ],
    failure: [],
  });
  const shown = log.all.map(({ value, before, ...write }) => ({
    ...write,
    value: value?.toString(),
    before: before?.toString(),
  }));
  assert.deepEqual(shown, [
    {
      ...{ revision: 3, atMs: 10, key: "/a", type: "put", value: "1", before: undefined },
      by: { by: "test", method: "POST", path: "/x" },
    },
    { revision: 4, atMs: 20, key: "/b", type: "put", by: undefined, value: "2", before: undefined },
    { revision: 4, atMs: 20, key: "/a", type: "delete", by: undefined, value: undefined, before: "1" },
  ]);
  assert.deepEqual(
    log.of("/a").map(({ type }) => type),
    ["put", "delete"],
  );
  const copy = new WriteLog(
    etcd.fork(),
    () => now,
    () => by,
    log.all,
  );
  etcd.put("/c", Buffer.from("3"));
  assert.deepEqual([copy.all.length, log.all.length], [3, 4]);
});

test("of 20,000 writes the older half is dropped", () => {
  const etcd = new MemoryEtcd();
  const log = new WriteLog(
    etcd,
    () => 0,
    () => undefined,
  );
  const bytes = Buffer.alloc(0);
  for (let i = 0; i < 20_000; i++) etcd.put("/a", bytes);
  assert.equal(log.all.length, 20_000);
  etcd.put("/a", bytes);
  assert.deepEqual([log.all.length, log.all[0]?.revision], [10_001, 10_002]);
});
