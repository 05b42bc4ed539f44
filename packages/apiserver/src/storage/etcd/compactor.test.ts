import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/logging/logger";
import { startEtcd } from "@coxswain/apimachinery/testing/etcd";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { compactRevisionKey } from "../key-layout.ts";
import { newEtcdClient } from "./client.ts";
import { startCompactor } from "./compactor.ts";
import { EtcdError } from "./errors.ts";

test("what was current is kept for one interval, then compacted", async (t) => {
  const etcd = await startEtcd();
  const client = newEtcdClient({ servers: [etcd.endpoint] });
  t.after(() => client.close());
  await client.txn({ compare: [], success: [{ type: "delete", key: compactRevisionKey }], failure: [] });
  const clock = newFakeClock();
  const intervalMs = 5 * 60_000;
  const compactor = startCompactor({ client, intervalMs, clock, log: discardLogger });
  t.after(() => compactor.stop());

  const { revision } = await client.range({ key: "x" });
  const readable = async (): Promise<boolean> => {
    try {
      await client.range({ key: "x", revision });
      return true;
    } catch (err) {
      if (err instanceof EtcdError && err.reason === "compacted") return false;
      throw err;
    }
  };
  const learned = async (): Promise<number> => (await client.range({ key: compactRevisionKey })).kvs[0]?.version ?? 0;
  await clock.advance(intervalMs - 1);
  assert.equal(await learned(), 0);
  await clock.advance(1);
  await waitFor(async () => (await learned()) === 1);
  assert.equal(await readable(), true, "five minutes old, and still there");
  await waitFor(async () => {
    if (!(await readable())) return true;
    // A tick during a running round is skipped; the next one compacts.
    await clock.advance(intervalMs);
    return false;
  });
});
