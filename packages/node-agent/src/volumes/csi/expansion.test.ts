import assert from "node:assert/strict";
import { test } from "node:test";
import type { PersistentVolumeClaim } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { persistentVolumeClaims } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { PluginError } from "../../plugins/plugin-channel.ts";
import { aNodePod } from "../../testing/builders.ts";
import { aClaim, aVolume } from "../../testing/csi-bench.ts";
import type { CsiClient } from "./csi-client.ts";
import { persistentSource } from "./csi-source.ts";
import { newExpansion } from "./expansion.ts";

/** A claim of 1Gi whose volume has 2Gi, and a driver that can expand. */
function expanding(
  recovers: boolean,
  status: Partial<NonNullable<PersistentVolumeClaim["status"]>> = {},
  capabilities: readonly string[] = ["expand"],
) {
  const client = newFakeClient({ clock: newFakeClock() });
  const claim = { ...aClaim("1Gi"), status: { ...aClaim("1Gi").status, ...status } } as PersistentVolumeClaim;
  client.put(persistentVolumeClaims, claim);
  const calls: number[] = [];
  const events: string[] = [];
  const ofClaim: unknown[] = [];
  const expand = newExpansion({
    client,
    recorder: { event: (...event: unknown[]) => void ofClaim.push(event) } as unknown as Parameters<
      typeof newExpansion
    >[0]["recorder"],
    reportPodEvent: (_pod, _container, _type, reason) => void events.push(reason),
    nodeName: "n1",
    recovers,
    log: discardLogger,
  });
  let driverFails: Error | undefined;
  const driver = {
    capabilities: async () => new Set(capabilities),
    async expand({ bytes }: { bytes: number }) {
      calls.push(bytes);
      if (driverFails !== undefined) throw driverFails;
    },
  } as unknown as CsiClient;
  const volume = aVolume();
  const published = { path: "/p", targetPath: "/p", stagingPath: "/s", again: false };
  const run = (seen = claim) =>
    expand({ pod: aNodePod(), claim: seen, volume, source: persistentSource(volume, false)!, published, driver: () => driver });
  const stored = () => client.object<PersistentVolumeClaim>(persistentVolumeClaims, "default/data") as PersistentVolumeClaim;
  const failWith = (err: Error) => {
    driverFails = err;
  };
  return { client, claim, calls, events, ofClaim, run, stored, failWith };
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

test("a driver that does not expand volumes on the node is not asked to, and the claim stays as it is", async () => {
  const { calls, events, claim, run, stored } = expanding(true, { resizeStatus: "NodeExpansionPending" }, ["stageUnstage"]);
  await run();
  assert.deepEqual([calls, events, stored().status], [[], [], claim.status]);
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

for (const { resizeStatus, times } of [
  { resizeStatus: "NodeExpansionPending", times: 1 },
  { resizeStatus: "NodeExpansionInProgress", times: 1 },
  { resizeStatus: "ControllerExpansionInProgress", times: 0 },
  { resizeStatus: "ControllerExpansionFailed", times: 0 },
  { resizeStatus: "NodeExpansionFailed", times: 0 },
]) {
  test(`a claim in the state ${resizeStatus} is expanded ${times} times`, async () => {
    const { calls, run } = expanding(true, { resizeStatus });
    await run();
    assert.equal(calls.length, times);
  });
}

test("an expansion ends the conditions of the resize, keeps those of others, and is an event of the claim, too", async () => {
  const condition = (type: string) => ({ type, status: "True" as const });
  const conditions = ["Resizing", "example.com/audited", "FileSystemResizePending"].map(condition);
  const { claim, ofClaim, events, run, stored } = expanding(false, { conditions });
  await run();
  assert.deepEqual(stored().status?.conditions, [condition("example.com/audited")]);
  const { namespace, name, uid } = claim.metadata;
  const message = 'MountVolume.NodeExpandVolume succeeded for volume "pv1" n1';
  const ref = { apiVersion: "v1", kind: "PersistentVolumeClaim", namespace, name, uid };
  assert.deepEqual(ofClaim, [[ref, "Normal", "FileSystemResizeSuccessful", message]]);
  assert.deepEqual(events, ["FileSystemResizeSuccessful"]);
});

test("a failed expansion that cannot be marked in the claim is reported with the driver's error", async () => {
  const { client, run, failWith, ofClaim } = expanding(true, { resizeStatus: "NodeExpansionInProgress" });
  client.react("patch", "persistentvolumeclaims", ({ sent }) => {
    if ((sent as PersistentVolumeClaim).status?.resizeStatus === "NodeExpansionFailed") throw new Error("away");
    return undefined;
  });
  failWith(new PluginError("Internal", "bad block"));
  await assert.rejects(run(), /^Error: Expander\.NodeExpand failed to expand the volume : .*bad block$/);
  assert.deepEqual(ofClaim, []);
});

test("an expansion whose end cannot be written to the claim is a failure, after the driver has expanded the volume", async () => {
  const { client, calls, run } = expanding(false);
  client.react("patch", "persistentvolumeclaims", () => {
    throw new Error("away");
  });
  await assert.rejects(run(), { message: "MountVolume.NodeExpandVolume update PVC status failed : away" });
  assert.deepEqual(calls, [2 * 1024 ** 3]);
});

test("a driver that does not expand a volume in use leaves the volume mounted as it is", async () => {
  const { calls, run, failWith, events, stored } = expanding(false);
  failWith(new PluginError("FailedPrecondition", "in use"));
  await run();
  assert.deepEqual([calls.length, events, stored().status?.capacity], [1, [], { storage: "1Gi" }]);
});

for (const { name, recovers, status, want } of [
  {
    name: "with allocated resources",
    recovers: true,
    status: { allocatedResources: { storage: "2Gi" } },
    want: "NodeExpansionFailed",
  },
  { name: "of a resizer that writes neither field", recovers: true, status: {}, want: undefined },
  { name: "without the gate", recovers: false, status: { allocatedResources: { storage: "2Gi" } }, want: undefined },
]) {
  test(`a failed expansion of a claim ${name} is ${want === undefined ? "not " : ""}marked in it`, async () => {
    const { run, stored, failWith } = expanding(recovers, status);
    failWith(new PluginError("InvalidArgument", "too large"));
    await assert.rejects(run(), /too large/);
    assert.equal(stored().status?.resizeStatus, want);
  });
}
