import assert from "node:assert/strict";
import { test } from "node:test";
import type { PersistentVolumeClaim } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { persistentVolumeClaims } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { aNodePod } from "../../testing/builders.ts";
import { aClaim, aVolume } from "../../testing/csi-bench.ts";
import type { CsiClient } from "./csi-client.ts";
import { persistentSource } from "./csi-source.ts";
import { newExpansion } from "./expansion.ts";

/** A claim of 1Gi whose volume has 2Gi, and a driver that can expand. */
function expanding(recovers: boolean, status: Partial<NonNullable<PersistentVolumeClaim["status"]>> = {}) {
  const client = newFakeClient({ clock: newFakeClock() });
  const claim = { ...aClaim("1Gi"), status: { ...aClaim("1Gi").status, ...status } } as PersistentVolumeClaim;
  client.put(persistentVolumeClaims, claim);
  const calls: number[] = [];
  const events: string[] = [];
  const expand = newExpansion({
    client,
    recorder: { event: () => undefined } as unknown as Parameters<typeof newExpansion>[0]["recorder"],
    reportPodEvent: (_pod, _container, _type, reason) => void events.push(reason),
    nodeName: "n1",
    recovers,
    log: discardLogger,
  });
  const driver = {
    capabilities: async () => new Set(["expand"]),
    expand: async ({ bytes }: { bytes: number }) => void calls.push(bytes),
  } as unknown as CsiClient;
  const volume = aVolume();
  const published = { path: "/p", targetPath: "/p", stagingPath: "/s", again: false };
  const run = (seen = claim) =>
    expand({ pod: aNodePod(), claim: seen, volume, source: persistentSource(volume, false)!, published, driver: () => driver });
  const stored = () => client.object<PersistentVolumeClaim>(persistentVolumeClaims, "default/data") as PersistentVolumeClaim;
  return { client, claim, calls, events, run, stored };
}

test("a volume whose claim shows the new size by now is not expanded again for an older copy of the claim", async () => {
  const { client, claim, calls, events, run } = expanding(false);
  client.put(persistentVolumeClaims, { ...claim, status: { ...claim.status, capacity: { storage: "2Gi" } } });
  await run(claim);
  assert.deepEqual([calls, events], [[], []]);
});

test("without RecoverVolumeExpansionFailure the claim's status has no state of the expansion", async () => {
  const { calls, run, stored } = expanding(false, { capacity: { storage: "1Gi", "example.com/iops": "5" } });
  await run();
  assert.deepEqual(calls, [2 * 1024 ** 3]);
  assert.deepEqual(stored().status, {
    ...aClaim("2Gi").status,
    capacity: { storage: "2Gi", "example.com/iops": "5" },
    conditions: [],
  });
});

test("a claim that another writer changes before the expansion begins is not expanded", async () => {
  const { client, claim, calls, run, stored } = expanding(true, { resizeStatus: "NodeExpansionPending" });
  const get = client.get.bind(client);
  client.get = (async (...args: Parameters<typeof get>) => {
    const read = await get(...args);
    client.put(persistentVolumeClaims, { ...claim, status: { ...claim.status, resizeStatus: "ControllerExpansionInProgress" } });
    return read;
  }) as typeof get;
  await assert.rejects(run(), /Expander\.NodeExpand failed/);
  assert.deepEqual([calls, stored().status?.resizeStatus], [[], "ControllerExpansionInProgress"]);
});
