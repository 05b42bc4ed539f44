import assert from "node:assert/strict";
import { test } from "node:test";
import type { EtcdClient } from "./client.ts";
import { newEtcdHealth } from "./health.ts";

test("probes at the same time share one read, and one after a failure reads again", async () => {
  let reads = 0;
  const client = { range: async () => (reads++ === 0 ? Promise.reject(new Error("unreachable")) : {}) };
  const probe = newEtcdHealth([client as never as EtcdClient], "/registry", 10_000);
  for (const result of await Promise.allSettled([probe(), probe()])) assert.equal(result.status, "rejected");
  assert.equal(reads, 1);
  await probe();
  assert.equal(reads, 2);
});
