/** Effects of provisioner, deleter and class keeper on API server and disk, also when a step fails or was done before. */

import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Controller } from "@coxswain/apimachinery/controller/controller";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { Reconnection } from "@coxswain/apimachinery/informers/reconnection";
import { internalError } from "@coxswain/apimachinery/objects/errors/status-error";
import type { ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Node, PersistentVolume, PersistentVolumeClaim } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import {
  nodes,
  persistentVolumeClaims,
  persistentVolumes,
  storageClasses,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { StorageClass } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { selectedNode, storageProvisioner } from "@coxswain/apimachinery/volumes/annotations";
import { type LocalVolumesOptions, newClassKeeper, newDeleter, newProvisioner } from "./controllers.ts";
import { newStorageClass, newVolume } from "./decisions.ts";
import { provisioner } from "./names.ts";

const uid = "00000000-0000-4000-8000-000000000001";
const volumeName = `pvc-${uid}`;
const node: Node = { metadata: { name: "n1" }, spec: {} };
const local = newStorageClass([]);
const aClaim = (extra: Partial<PersistentVolumeClaim["spec"]> = {}): PersistentVolumeClaim => ({
  metadata: {
    ...{ namespace: "default", name: "data", uid },
    annotations: { [storageProvisioner]: provisioner, [selectedNode]: "n1" },
  },
  spec: {
    storageClassName: local.metadata.name ?? "",
    accessModes: ["ReadWriteOnce"],
    resources: { requests: { storage: "1Gi" } },
    ...extra,
  },
});
const aVolume = (): PersistentVolume => ({
  ...newVolume(aClaim(), local, { node, name: volumeName, path: `/volumes/${volumeName}` }),
  status: { phase: "Released" },
});

async function start(
  t: TestContext,
  make: (options: LocalVolumesOptions) => Controller,
  ...objects: [ResourceRef, KubeObject][]
) {
  const clock = newFakeClock();
  const client = newFakeClient({ clock, objects });
  const informers = newInformerFactory(client, { clock, log: discardLogger });
  const events: string[] = [];
  const disk = { calls: [] as string[], failures: [] as Error[], freeBytes: 2 ** 40 };
  const step = (call: string): void => {
    disk.calls.push(call);
    const failure = disk.failures.shift();
    if (failure !== undefined) throw failure;
  };
  const controller = make({
    ...{ nodeName: "n1", client, informers, log: discardLogger, clock },
    reconnection: new Reconnection({ periodMs: () => 500, clock, random: () => 1 }),
    recorder: { event: (_, type, reason, message) => void events.push(`${type} ${reason} ${message}`), flush: async () => {} },
    folders: {
      root: "/volumes",
      async create(name) {
        step(`create ${name}`);
        return `/volumes/${name}`;
      },
      remove: async (name) => step(`remove ${name}`),
      space: async () => ({ totalBytes: 2 ** 40, freeBytes: disk.freeBytes, totalFiles: 0, freeFiles: 0 }),
    },
  });
  const ending = new AbortController();
  informers.start(ending.signal);
  const running = controller.run(ending.signal);
  t.after(async () => {
    ending.abort();
    await running;
  });
  await settle();
  return { clock, client, events, disk, ending };
}

test("a claim gets a volume in a separate folder, after a failure of the disk or of the API server, too", async (t) => {
  const { clock, client, events, disk } = await start(t, newProvisioner, [nodes, node], [storageClasses, local]);
  disk.failures.push(new Error("no space left"));
  let refusals = 1;
  client.react("create", "persistentvolumes", () => {
    if (refusals-- > 0) throw internalError("etcd is away");
  });
  client.put(persistentVolumeClaims, aClaim());
  const volume = () => client.object<PersistentVolume>(persistentVolumes, volumeName);
  await waitFor(async () => (await clock.advance(1_000)) ?? volume() !== undefined);
  assert.equal(volume()?.spec?.local?.path, `/volumes/${volumeName}`);
  await waitFor(() => events.length === 3);
  const reasons = [
    /^Warning ProvisioningFailed .* "local": no space left$/,
    /^Warning ProvisioningFailed .*etcd is away$/,
    /^Normal Provisioning/,
  ];
  for (const [i, reason] of reasons.entries()) assert.match(events[i] ?? "", reason);
  assert.equal(disk.calls.length, 3);
});

test("after five minutes without an API server a claim gets its volume within the next attempt, without an event for each", async (t) => {
  const { clock, client, events } = await start(t, newProvisioner, [nodes, node], [storageClasses, local]);
  let isAway = true;
  client.react("create", "persistentvolumes", () => {
    if (isAway) throw Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
  });
  client.put(persistentVolumeClaims, aClaim());
  for (let second = 0; second < 300; second++) await clock.advance(1_000);
  assert.deepEqual([client.object(persistentVolumes, volumeName), events], [undefined, []]);
  isAway = false;
  await clock.advance(500);
  await settle();
  assert.equal(client.object<PersistentVolume>(persistentVolumes, volumeName)?.spec?.local?.path, `/volumes/${volumeName}`);
});

test("what fails because the process ends is no event on the claim", async (t) => {
  const { client, events, ending } = await start(t, newProvisioner, [nodes, node], [storageClasses, local]);
  let tries = 0;
  client.react("create", "persistentvolumes", () => {
    tries++;
    ending.abort(new Error("the process ends"));
    throw new Error("aborted");
  });
  client.put(persistentVolumeClaims, aClaim());
  await waitFor(() => tries > 0);
  await settle();
  assert.deepEqual([tries, events], [1, []]);
});

test("a claim that is seen before its class gets its volume when the class is there", async (t) => {
  const { client, disk } = await start(t, newProvisioner, [nodes, node], [persistentVolumeClaims, aClaim()]);
  assert.deepEqual(disk.calls, []);
  client.put(storageClasses, local);
  await waitFor(() => client.object(persistentVolumes, volumeName) !== undefined);
});

test("the volume of an earlier attempt is taken; a claim that asks for more than there is is warned", async (t) => {
  const { events, disk } = await start(
    ...([t, newProvisioner] as const),
    ...([
      [nodes, node],
      [storageClasses, local],
      [persistentVolumes, aVolume()],
      [persistentVolumeClaims, aClaim()],
    ] as [ResourceRef, KubeObject][]),
  );
  await waitFor(() => events.length > 0);
  assert.deepEqual([events.length, disk.calls], [1, [`create ${volumeName}`]]);
  assert.match(events[0] ?? "", /^Normal ProvisioningSucceeded /);
  const exact = await start(t, newProvisioner, [nodes, node], [storageClasses, local]);
  exact.disk.freeBytes = 2 ** 30;
  exact.client.put(persistentVolumeClaims, aClaim());
  await waitFor(() => exact.client.object(persistentVolumes, volumeName) !== undefined);
  await settle();
  assert.equal(exact.events.length, 1, "all of the space is asked for");
  const little = await start(t, newProvisioner, [nodes, node], [storageClasses, local]);
  little.disk.freeBytes = 2 ** 30 - 1;
  little.client.put(persistentVolumeClaims, aClaim());
  await waitFor(() => little.events.length === 2);
  assert.match(little.events[1] ?? "", /^Warning LittleSpace the claim asks for 1.0Gi/);
});

test("without its Node a claim is told so, and gets its volume when the Node is there", async (t) => {
  const { clock, client, events, disk } = await start(t, newProvisioner, [storageClasses, local]);
  client.put(persistentVolumeClaims, aClaim());
  await waitFor(() => events.length > 0);
  assert.equal(events[0], 'Warning ProvisioningFailed failed to provision volume with StorageClass "local": there is no Node n1');
  assert.deepEqual([disk.calls, client.writes], [[], []]);
  client.put(nodes, node);
  await waitFor(async () => (await clock.advance(1_000)) ?? client.object(persistentVolumes, volumeName) !== undefined);
  await waitFor(() => events.at(-1) === `Normal ProvisioningSucceeded Successfully provisioned volume ${volumeName}`);
});

test("a claim that cannot be provisioned is reported and not tried; another node's claim is ignored", async (t) => {
  const { client, events, disk } = await start(t, newProvisioner, [nodes, node], [storageClasses, local]);
  client.put(persistentVolumeClaims, aClaim({ volumeMode: "Block" }));
  await waitFor(() => events.length === 1);
  assert.match(events[0] ?? "", /volumes of mode Block are not supported$/);
  const other = aClaim();
  other.metadata = { ...other.metadata, name: "other", annotations: { ...other.metadata.annotations, [selectedNode]: "n2" } };
  client.put(persistentVolumeClaims, other);
  await settle();
  assert.deepEqual([events.length, disk.calls, client.writes], [1, [], []]);
});

test("a folder is removed before its volume, and again when that failed; then the volume is deleted, once", async (t) => {
  const { clock, client, events, disk } = await start(t, newDeleter, [nodes, node]);
  disk.failures.push(new Error("device is busy"));
  client.put(persistentVolumes, aVolume());
  await waitFor(() => events.length === 1);
  const { uid: stored } = client.object<PersistentVolume>(persistentVolumes, volumeName)?.metadata ?? {};
  assert.deepEqual([events, client.writes], [["Warning VolumeFailedDelete device is busy"], []]);
  let refusals = 1;
  client.react("delete", "persistentvolumes", () => {
    if (refusals-- > 0) throw internalError("etcd is away");
  });
  await waitFor(async () => (await clock.advance(1_000)) ?? client.object(persistentVolumes, volumeName) === undefined);
  assert.deepEqual(
    disk.calls,
    Array.from({ length: 3 }, () => `remove ${volumeName}`),
  );
  const { sent } = client.writes[0] ?? {};
  assert.ok(stored);
  assert.equal((sent as { preconditions: { uid: string } }).preconditions.uid, stored);
});

test("a volume stays while its claim is there, and is deleted with the claim; a new claim of the name is another one", async (t) => {
  const claim = { ...aClaim(), spec: { ...aClaim().spec, volumeName } };
  const { client, disk } = await start(
    t,
    newDeleter,
    [nodes, node],
    [persistentVolumeClaims, claim],
    [persistentVolumes, aVolume()],
  );
  await settle();
  assert.deepEqual(disk.calls, []);
  client.remove(persistentVolumeClaims, "default/data");
  await waitFor(() => client.object(persistentVolumes, volumeName) === undefined);
  const renewed = { ...claim, metadata: { ...claim.metadata, uid: uid.replace("1", "2") } };
  const again = await start(t, newDeleter, [nodes, node], [persistentVolumeClaims, renewed], [persistentVolumes, aVolume()]);
  await waitFor(() => again.client.object(persistentVolumes, volumeName) === undefined);
});

test("a volume that was deleted meanwhile is not a failure; one with another path is refused", async (t) => {
  const { client, events } = await start(t, newDeleter, [nodes, node]);
  client.react("delete", "persistentvolumes", () => client.remove(persistentVolumes, volumeName));
  client.put(persistentVolumes, aVolume());
  await waitFor(() => client.object(persistentVolumes, volumeName) === undefined);
  await settle();
  assert.equal(client.writes.length, 1);
  const volume = aVolume();
  client.put(persistentVolumes, { ...volume, spec: { ...volume.spec, local: { path: "/etc" } } });
  await waitFor(() => events.length === 1);
  assert.match(events[0] ?? "", /^Warning VolumeFailedDelete \/etc is not the folder/);
});

test("the class is made once, made again when it was deleted, and not over another node's", async (t) => {
  const { clock, client } = await start(t, newClassKeeper);
  const name = local.metadata.name ?? "";
  const there = () => client.object<StorageClass>(storageClasses, name) !== undefined;
  await waitFor(there);
  client.remove(storageClasses, name);
  await waitFor(there);
  assert.equal(client.writes.length, 2);
  let refusals = 1;
  client.react("create", "storageclasses", () => {
    if (refusals-- > 0) throw internalError("etcd is away");
    client.put(storageClasses, local); // another node is faster
  });
  client.remove(storageClasses, name);
  await waitFor(async () => (await clock.advance(1_000)) ?? there());
  await settle();
  assert.equal(client.writes.length, 4, "one was refused and tried again");
});
