import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, rmSync, utimesSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { Reconnection } from "@coxswain/apimachinery/informers/reconnection";
import type { Node } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import {
  nodes,
  persistentVolumeClaims,
  persistentVolumes,
  storageClasses,
} from "@coxswain/apimachinery/objects/schema/kinds/resources";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { selectedNode, storageProvisioner } from "@coxswain/apimachinery/volumes/annotations";
import type { PartContext } from "../part.ts";
import { openFolders } from "./folders.ts";
import { provisioner } from "./names.ts";
import { startLocalVolumes } from "./part.ts";

const node: Node = { metadata: { name: "n1" }, spec: {} };
const uid = (i: number): string => `00000000-0000-4000-8000-00000000000${i}`;

test("the part makes its class and volumes, deletes them, removes left folders, and is unhealthy while the disk is full", async (t) => {
  const root = mkdtempSync(join(tmpdir(), "cox-local-volumes-"));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  const left = join(root, `pvc-${uid(9)}`);
  mkdirSync(left);
  utimesSync(left, 1, 1);
  const clock = newFakeClock();
  const client = newFakeClient({ clock, objects: [[nodes, node]] });
  const informers = newInformerFactory(client, { clock, log: discardLogger });
  const ending = new AbortController();
  const disk = { isFull: false };
  const context = {
    ...{ nodeName: "n1", client, informers, clock, log: discardLogger, metrics: newMetricsRegistry(), signal: ending.signal },
    flags: { "local-volumes-dir": root },
    reconnection: new Reconnection({ periodMs: () => 500, clock }),
    recorder: { event: () => {}, flush: async () => {} },
    fail: assert.fail,
  } as unknown as PartContext;
  informers.start(ending.signal);
  const part = await startLocalVolumes(context, async (path) => {
    const folders = await openFolders(path);
    return { ...folders, space: async () => ({ ...(await folders.space()), ...(disk.isFull && { freeBytes: 0 }) }) };
  });
  t.after(async () => {
    ending.abort(new Error("the test ends"));
    await part.stop?.();
  });
  const until = (condition: () => boolean): Promise<true> => waitFor(async () => (await clock.advance(1_000)) ?? condition());
  await until(() => client.object(storageClasses, "local") !== undefined);
  client.put(persistentVolumeClaims, {
    metadata: {
      ...{ namespace: "default", name: "data", uid: uid(1) },
      annotations: { [storageProvisioner]: provisioner, [selectedNode]: "n1" },
    },
    spec: { storageClassName: "local", accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } },
  });
  const name = `pvc-${uid(1)}`;
  await until(() => client.object(persistentVolumes, name) !== undefined);
  assert.ok(existsSync(join(root, name)));
  client.remove(persistentVolumeClaims, "default/data");
  const volume = client.object(persistentVolumes, name);
  client.put(persistentVolumes, { ...volume, metadata: volume?.metadata ?? {}, status: { phase: "Released" } });
  await until(() => client.object(persistentVolumes, name) === undefined);
  assert.ok(!existsSync(join(root, name)));
  await clock.advance(600_000);
  await until(() => !existsSync(left));
  await part.check?.();
  disk.isFull = true;
  await clock.advance(30_000);
  await until(() => {
    try {
      void part.check?.();
      return false;
    } catch (err) {
      assert.match((err as Error).message, new RegExp(`^the disk of ${root} is full: 0\\.0Gi of `));
      return true;
    }
  });
});
