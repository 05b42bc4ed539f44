import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { fullness, newDiskWatch } from "./disk-watch.ts";
import type { Space } from "./folders.ts";

const Gi = 2 ** 30;
const roomy: Space = { totalBytes: 100 * Gi, freeBytes: 50 * Gi, totalFiles: 1000, freeFiles: 500 };
const full = { ...roomy, freeBytes: Gi };

test("finds a disk full that has no bytes or no files left", () => {
  assert.equal(fullness(roomy), undefined);
  assert.equal(fullness({ ...roomy, totalFiles: 0, freeFiles: 0 }), undefined);
  assert.equal(fullness(full), "1.0Gi of 100.0Gi are free");
  assert.equal(fullness({ ...roomy, freeFiles: 3 }), "3 of 1000 files can still be created");
});

test("creates events on the claims of its own volumes once, again after ten minutes, and when the disk fills again", async (t) => {
  const clock = newFakeClock();
  const ending = new AbortController();
  t.after(() => ending.abort());
  let space = roomy;
  const reported: string[] = [];
  const metrics = newMetricsRegistry();
  const volume = (path: string, name: string, uid: string) => ({
    metadata: {},
    spec: { local: { path }, claimRef: { namespace: "default", name, uid } },
  });
  const watch = newDiskWatch({
    nodeName: "n1",
    folders: { root: "/v", space: () => Promise.resolve(space) },
    claims: {
      get: (key) => (key === "default/gone" ? undefined : { metadata: { name: key.split("/")[1], uid: "u" }, spec: {} }),
    },
    volumes: {
      list: () => [
        volume("/v/0", "gone", "u"),
        volume("/v/a", "mine", "u"),
        volume("/v/b", "renewed", "old"),
        volume("/vv/c", "other", "u"),
      ],
    },
    recorder: {
      event: (object, _type, reason, message) =>
        void reported.push(`${"metadata" in object ? object.metadata.name : ""} ${reason}: ${message}`),
      flush: () => Promise.resolve(),
    },
    ...{ log: discardLogger, clock, metrics },
  });
  void watch.run(ending.signal);
  const pass = async (minutes: number) => {
    for (let i = 0; i < minutes * 2; i++) {
      await clock.advance(30_000);
      await settle(3);
    }
  };
  await pass(1);
  assert.deepEqual(reported, []);
  const shown = await metrics.render();
  assert.match(shown, new RegExp(`^coxswain_local_volumes_free_bytes ${50 * Gi}$`, "m"));
  assert.match(shown, new RegExp(`^coxswain_local_volumes_capacity_bytes ${100 * Gi}$`, "m"));
  space = full;
  await pass(9);
  assert.deepEqual(reported, ["mine DiskFull: the disk of local volumes of node n1 is full: 1.0Gi of 100.0Gi are free"]);
  await pass(2);
  assert.equal(reported.length, 2);
  space = roomy;
  await pass(1);
  assert.equal(watch.problem, undefined);
  space = full;
  await pass(1);
  await waitFor(() => reported.length === 3);
});
