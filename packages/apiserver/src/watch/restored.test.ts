import assert from "node:assert/strict";
import { test } from "node:test";
import { isResourceExpired } from "@coxswain/apimachinery/objects/errors/predicates";
import { StatusError } from "@coxswain/apimachinery/objects/errors/status-error";
import { realClock } from "@coxswain/apimachinery/process/clock/clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { startRestorableEtcd } from "@coxswain/apimachinery/testing/restorable-etcd";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { openStorage } from "../storage/open.ts";
import { aConfigMap, suiteResource } from "../storage/testing.ts";

const isTooLarge = (err: unknown): boolean =>
  err instanceof StatusError && err.code === 504 && err.status.details?.causes?.[0]?.reason === "ResourceVersionTooLarge";
/** The expected error from memory: the cache has advanced beyond the revisions that the restore removed. */
const isTooOld = (err: unknown): boolean => isResourceExpired(err);

for (const { name, watchCache, isRefusal } of [
  { name: "from memory", watchCache: true, isRefusal: isTooOld },
  { name: "from etcd", watchCache: false, isRefusal: isTooLarge },
]) {
  test(`${name}: a watch from a revision that a restore took away is refused, one from a new list hears what is written`, async (t) => {
    const etcd = await startRestorableEtcd(t);
    const set = await openStorage({
      etcd: { servers: [etcd.endpoint], prefix: "/restored" },
      resources: [suiteResource],
      clock: realClock,
      log: discardLogger,
      ...(watchCache ? {} : { watchCache: false }),
    });
    t.after(() => set.stop());
    await set.whenReady();
    const storage = set.for(suiteResource);
    const { signal } = new AbortController();
    await storage.create("web/kept", aConfigMap("kept"));
    etcd.save();
    for (let i = 0; i < 50; i++) await storage.create(`web/lost${i}`, aConfigMap(`lost${i}`));
    const { revision } = await storage.list({ prefix: "" });
    const open = await storage.watch({ prefix: "", revision, signal });
    await etcd.restore();
    await waitFor(async () => (await storage.list({ prefix: "" }).catch(() => undefined))?.entries.length === 1, {
      what: "a list of the restored state",
    });
    if (watchCache) await waitFor(() => open.ended, { what: "the end of the watch from before" });
    open.stop();
    await assert.rejects(storage.watch({ prefix: "", revision, signal }), isRefusal);

    const now = await storage.list({ prefix: "" });
    assert.deepEqual(
      now.entries.map(({ key }) => key),
      ["web/kept"],
    );
    const stream = await storage.watch({ prefix: "", revision: now.revision, signal });
    await storage.create("web/new", aConfigMap("new"));
    await stream.ready();
    assert.deepEqual(
      stream.take().map((event) => event.type === "ADDED" && event.entry.key),
      ["web/new"],
    );
    stream.stop();
  });
}
