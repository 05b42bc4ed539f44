import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { startEtcd } from "@coxswain/apimachinery/testing/etcd";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { compactRevisionKey } from "../key-layout.ts";
import { type EtcdClient, newEtcdClient } from "./client.ts";
import { startCompactor } from "./compactor.ts";
import { EtcdError } from "./errors.ts";

test("a revision stays readable for one interval and is then compacted", async (t) => {
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

/** An etcd whose compaction key the test sets; every transaction increments the revision. */
function aCluster() {
  const state = {
    version: 0,
    revision: 100,
    compacted: [] as number[],
    failure: undefined as Error | undefined,
    value: undefined as Buffer | undefined,
  };
  let held: Promise<void> | undefined;
  const client = {
    async txn({ compare, success }: { compare: { value: number }[]; success: { value: Buffer }[] }) {
      await held;
      state.revision++;
      if (compare[0]?.value !== state.version) {
        const kvs = state.value === undefined ? [] : [{ version: state.version, value: state.value }];
        return { succeeded: false, revision: state.revision, ranges: [{ kvs }] };
      }
      state.version++;
      state.value = success[0]?.value;
      return { succeeded: true, revision: state.revision, ranges: [] };
    },
    async compact(revision: number) {
      if (state.failure !== undefined) throw state.failure;
      state.compacted.push(revision);
    },
  } as unknown as EtcdClient;
  const clock = newFakeClock();
  const errors: unknown[] = [];
  const log = { ...discardLogger, error: (_: string, err: unknown) => void errors.push(err) };
  const hold = (until: Promise<void>): void => {
    held = until;
  };
  return { state, client, clock, log, errors, hold };
}

test("of two servers one compacts in each interval, at the revision that it saw one interval before", async () => {
  const { state, client, clock, log, errors } = aCluster();
  const compactors = [1, 2].map(() => startCompactor({ client, intervalMs: 1000, clock, log }));
  await clock.advance(1000); // the first writes the key, the second reads it
  assert.deepEqual([state.version, state.compacted], [1, []]);
  await clock.advance(1000);
  assert.deepEqual([state.version, state.compacted], [2, [101]]);
  await clock.advance(1000);
  assert.deepEqual([state.version, state.compacted], [3, [101, 103]]);
  assert.deepEqual(
    compactors.map(({ compacted }) => compacted),
    [103, 103],
    "the second has read what the first compacted",
  );
  for (const compactor of compactors) compactor.stop();
  await clock.advance(5000);
  assert.deepEqual([state.version, errors, clock.waiting], [3, [], 0]);
});

test("a failed compaction is logged, one that another server was faster with is not; both are followed by the next", async () => {
  const { state, client, clock, log, errors } = aCluster();
  startCompactor({ client, intervalMs: 1000, clock, log });
  await clock.advance(1000);
  state.failure = new EtcdError("compacted", "required revision has been compacted");
  await clock.advance(1000);
  assert.deepEqual(errors, []);
  state.failure = new EtcdError("canceled", "the client was closed");
  await clock.advance(1000);
  await clock.advance(1000); // its own write of the key was read in between
  assert.deepEqual(errors, []);
  state.failure = new EtcdError("unavailable", "no leader");
  await clock.advance(1000);
  assert.deepEqual(errors, [state.failure]);
  state.failure = undefined;
  await clock.advance(1000); // its own write of the key is read first
  await clock.advance(1000);
  assert.deepEqual(state.compacted, [106]);
});

test("after a restore the compacted revision is that of the restored key, and 0 without one", async () => {
  const { state, client, clock, log } = aCluster();
  const compactor = startCompactor({ client, intervalMs: 1000, clock, log });
  await clock.advance(1000);
  await clock.advance(1000);
  assert.equal(compactor.compacted, 101);
  Object.assign(state, { version: 9, value: Buffer.from("40") });
  await clock.advance(1000);
  assert.equal(compactor.compacted, 40);
  for (const value of [Buffer.from("no number"), undefined]) {
    Object.assign(state, { version: value === undefined ? 0 : 5, value });
    await clock.advance(1000);
    assert.equal(compactor.compacted, 0);
  }
});

test("a round that takes longer than the interval is not joined by a second one", async () => {
  const { state, client, clock, log, hold } = aCluster();
  const slow = Promise.withResolvers<void>();
  hold(slow.promise);
  startCompactor({ client, intervalMs: 1000, clock, log });
  await clock.advance(3000);
  slow.resolve();
  await clock.advance(0);
  assert.deepEqual([state.revision, state.version], [101, 1]);
  await clock.advance(1000);
  assert.deepEqual(state.compacted, [101]);
});

test("an interval of zero compacts nothing", () => {
  const { client, clock, log } = aCluster();
  startCompactor({ client, intervalMs: 0, clock, log }).stop();
  assert.equal(clock.waiting, 0);
});
