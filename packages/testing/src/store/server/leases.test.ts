import assert from "node:assert/strict";
import { test } from "node:test";
import { MemoryEtcd } from "../memory-etcd.ts";
import { ServedLeases } from "./leases.ts";

test("a lease ends after its time unless it is renewed, or earlier on request, and then takes its keys along", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const etcd = new MemoryEtcd();
  const leases = new ServedLeases(etcd);
  const put = (key: string, lease: bigint) =>
    etcd.txn({ compare: [], success: [{ type: "put", key, value: Buffer.from("x"), lease }], failure: [] });
  const keys = (): string[] => etcd.entries("/").map(({ key }) => key);
  const [kept, left, ended] = [leases.grant(10), leases.grant(10), leases.grant(10)];
  put("/kept", kept);
  put("/left", left);
  put("/ended", ended);
  assert.equal(new Set([kept, left, ended]).size, 3);
  leases.end(ended);
  assert.deepEqual([keys(), leases.renew(ended)], [["/kept", "/left"], 0]);
  t.mock.timers.tick(9_999);
  assert.equal(leases.renew(kept), 10);
  assert.equal(leases.renew(99n), 0);
  t.mock.timers.tick(1);
  assert.deepEqual(keys(), ["/kept"]);
  t.mock.timers.tick(9_998);
  assert.deepEqual(keys(), ["/kept"]);
  t.mock.timers.tick(1);
  assert.deepEqual(keys(), []);
});

test("leases of a server that was closed do not end any more", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const etcd = new MemoryEtcd();
  const leases = new ServedLeases(etcd);
  const lease = leases.grant(1);
  etcd.txn({ compare: [], success: [{ type: "put", key: "/a", value: Buffer.from("x"), lease }], failure: [] });
  leases.close();
  t.mock.timers.tick(5_000);
  assert.equal(etcd.entries("/").length, 1);
  assert.equal(leases.renew(lease), 0);
});
