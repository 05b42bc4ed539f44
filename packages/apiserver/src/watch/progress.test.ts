import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { startEtcd } from "@coxswain/apimachinery/testing/etcd";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { newEtcdClient } from "../storage/etcd/client.ts";
import { barrierKey } from "../storage/key-layout.ts";
import { openStorage } from "../storage/open.ts";
import { aConfigMap, keys, suiteResource } from "../storage/testing.ts";
import { startEtcdFront } from "../testing/etcd-front.ts";

/**
 * Both implementations of a fresh read, from version detection to the answer from memory. Debian 12's etcd is 3.4.23, whose
 * progress replies may overtake events. The test reports a later version through a proxy and lets every event arrive before
 * it reads. That progress replies of later versions hold under load and faults is tested in e2e/robustness/store.
 */
let prefixes = 0;

async function aStage(t: TestContext, version: string) {
  const etcd = await startEtcd();
  const front = await startEtcdFront(t, etcd.endpoint, version);
  const prefix = `/progress-${prefixes++}`;
  const client = newEtcdClient({ servers: [etcd.endpoint] });
  const set = await openStorage({
    etcd: { servers: [front.endpoint], prefix },
    resources: [suiteResource],
    clock: realClock,
    log: discardLogger,
  });
  t.after(() => {
    set.stop();
    client.close();
  });
  await set.whenReady();
  const storage = set.for(suiteResource);
  let names = 0;
  return {
    front,
    storage,
    /** Writes below the prefix, then outside: the watch delivers no event of the last revision. */
    async write(): Promise<{ key: string; revision: number }> {
      const key = `web/a${names++}`;
      await storage.create(key, aConfigMap(key.slice(4)));
      await waitFor(async () => (await storage.list({ prefix: "", revision: 0 })).entries.some((entry) => entry.key === key), {
        what: "the event of the write",
      });
      return { key, revision: await client.put(`/elsewhere${prefix}`, Buffer.from(key)) };
    },
    /** Number of barriers written so far. */
    barriers: async () => (await client.range({ key: `${prefix}/${barrierKey}` })).kvs[0]?.version ?? 0,
  };
}

/** Reads until the members' versions are known, which reads do not wait for. */
async function usesProgress({ write, storage, front }: Awaited<ReturnType<typeof aStage>>): Promise<void> {
  await waitFor(
    async () => {
      const before = front.seen.progressRequests;
      await write();
      await storage.list({ prefix: "" });
      return front.seen.progressRequests > before;
    },
    { what: "progress to be requested" },
  );
}

test("over members whose progress replies are true, fresh reads share one request for progress and write nothing", async (t) => {
  const stage = await aStage(t, "3.5.13");
  await usesProgress(stage);
  const [barriers, requested] = [await stage.barriers(), stage.front.seen.progressRequests];
  for (let i = 0; i < 10; i++) {
    const { key, revision } = await stage.write();
    const lists = await Promise.all(Array.from({ length: 20 }, () => stage.storage.list({ prefix: "" })));
    for (const list of lists) {
      assert.ok(list.revision >= revision, `a list of ${list.revision} is older than ${revision}`);
      assert.ok(keys(list.entries).includes(key));
    }
  }
  assert.equal(await stage.barriers(), barriers);
  const requests = stage.front.seen.progressRequests - requested;
  assert.ok(requests >= 10 && requests <= 20, `${requests} requests for progress served 200 lists of 10 times`);
});

test("over etcd members with unreliable progress replies, consistent reads share one barrier and request no progress", async (t) => {
  const stage = await aStage(t, "3.5.12");
  await waitFor(() => stage.front.seen.memberLists > 0, { what: "the members to be queried" });
  const before = await stage.barriers();
  for (let i = 0; i < 10; i++) {
    const { revision } = await stage.write();
    const lists = await Promise.all(Array.from({ length: 20 }, () => stage.storage.list({ prefix: "" })));
    assert.ok(lists.every((list) => list.revision >= revision));
  }
  const barriers = (await stage.barriers()) - before;
  assert.ok(barriers >= 10 && barriers <= 20, `${barriers} barriers served 200 lists of 10 times`);
  assert.equal(stage.front.seen.progressRequests, 0);
});

test("a connection that comes back to another version, or to one that is not reported, ends the use of progress", async (t) => {
  const stage = await aStage(t, "3.4.31");
  await usesProgress(stage);
  for (const version of ["3.4.30", undefined]) {
    stage.front.version = version;
    const lists = stage.front.seen.memberLists;
    stage.front.cut();
    await waitFor(() => stage.front.seen.memberLists > lists, { what: "the members to be queried again" });
    const [barriers, requested] = [await stage.barriers(), stage.front.seen.progressRequests];
    const { revision } = await stage.write();
    assert.ok((await stage.storage.list({ prefix: "" })).revision >= revision);
    assert.equal(stage.front.seen.progressRequests, requested);
    assert.ok((await stage.barriers()) > barriers, "a barrier was written");
  }
  stage.front.version = "3.6.0";
  stage.front.cut();
  await usesProgress(stage);
});
