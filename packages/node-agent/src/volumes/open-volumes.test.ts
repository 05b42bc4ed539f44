import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { newFeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { newInformerFactory } from "@coxswain/apimachinery/informers/factory";
import { csiDrivers } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { CSIDriver } from "@coxswain/apimachinery/objects/schema/kinds/storage/v1";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newUnlimitedTurns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newFakeClient } from "@coxswain/apimachinery/testing/fake-client";
import { installFlexDriver, success } from "@coxswain/apimachinery/testing/flex-driver";
import { silentRecorder } from "@coxswain/apimachinery/testing/silent-recorder";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import type { AgentConfig } from "../agent-config.ts";
import { newBackground } from "../background.ts";
import type { ApiConnection } from "../node/api-connection.ts";
import { noObjects } from "../sources/api-objects.ts";
import { saveVolumeData } from "./csi/volume-data.ts";
import { type OpenedVolumes, openVolumes, startVolumes, volumesInUse } from "./open-volumes.ts";

const clock = newFakeClock();
const log = discardLogger;

/** A node on whose disk a FlexVolume and a CSI volume are left from before a restart. */
async function bench(t: TestContext, { gates = {}, isAlone = false }: { gates?: Record<string, boolean>; isAlone?: boolean }) {
  const rootDir = await mkdtemp(join(tmpdir(), "cox-open-volumes-"));
  t.after(() => rm(rootDir, { recursive: true, force: true }));
  await installFlexDriver(join(rootDir, "exec/example.com~disk"), "disk", { init: success, attach: success });
  await mkdir(join(rootDir, "plugins/kubernetes.io/flexvolume/example.com/disk/mounts/data"), { recursive: true });
  await saveVolumeData(join(rootDir, "plugins/kubernetes.io/csi/pv/pv1"), { driverName: "disk.example.com", volumeHandle: "h" });
  const client = newFakeClient({ clock });
  const informers = newInformerFactory(client, { log, clock });
  const api = { client, csiDrivers: informers.for<CSIDriver>(csiDrivers), recorder: silentRecorder };
  let hurried = 0;
  const opened = await openVolumes({
    config: { rootDir, volumePluginDir: join(rootDir, "exec"), controllerAttachDetach: true } as AgentConfig,
    featureGates: newFeatureGates("kubelet", gates),
    nodeName: "n1",
    node: { registered: () => undefined, hurry: () => void hurried++ },
    podsDir: join(rootDir, "pods"),
    objects: noObjects,
    api: isAlone ? undefined : (api as unknown as ApiConnection),
    reportPodEvent: () => undefined,
    metrics: newMetricsRegistry(),
    mounter: { mount: async () => {}, unmount: async () => {}, mountsBelow: async () => [] },
    clock,
    turns: newUnlimitedTurns(),
    log,
    onCall: () => undefined,
  });
  return { opened, informers, hurried: () => hurried };
}

test("volumes that are left from before a restart are in use, and the node hears of it", async (t) => {
  const { opened, hurried } = await bench(t, { isAlone: true });
  assert.deepEqual([volumesInUse(opened), opened.csi, hurried()], [["example.com/disk/data"], undefined, 1]);
});

test("which volumes are in use is not known before the CSI drivers are", async (t) => {
  const { opened, informers } = await bench(t, {});
  assert.equal(volumesInUse(opened), undefined);
  const stop = new AbortController();
  t.after(() => stop.abort());
  informers.start(stop.signal);
  await settle();
  assert.deepEqual(volumesInUse(opened), ["example.com/disk/data", "kubernetes.io/csi/disk.example.com^h"]);
});

test("volumes of all kinds are listed as in use, in order", () => {
  const inUse = (...ids: string[]) => ({ inUse: () => ids });
  const opened = {
    csi: inUse("kubernetes.io/csi/b", "kubernetes.io/csi/a"),
    flex: inUse("example.com/disk/z", "a.example.com/x"),
  };
  assert.deepEqual(volumesInUse(opened as unknown as OpenedVolumes), [
    "a.example.com/x",
    "example.com/disk/z",
    "kubernetes.io/csi/a",
    "kubernetes.io/csi/b",
  ]);
});

test("folders are counted with quotas only with the gate LocalStorageCapacityIsolationFSQuotaMonitoring", async (t) => {
  assert.equal((await bench(t, { isAlone: true })).opened.quotas, undefined);
  const gates = { LocalStorageCapacityIsolationFSQuotaMonitoring: true };
  assert.notEqual((await bench(t, { isAlone: true, gates })).opened.quotas, undefined);
});

test("a flex volume is attached by its driver in standalone mode, and waits for the controller otherwise", async (t) => {
  for (const isAlone of [true, false]) {
    const { opened } = await bench(t, { isAlone });
    const pod = { metadata: { name: "web", namespace: "default", uid: "uid-1" }, spec: { containers: [] } };
    const volume = { name: "data", flexVolume: { driver: "example.com/disk" } };
    const made = opened.flex.inline(pod, volume);
    if (isAlone) assert.match((await made)?.path ?? "", /data$/);
    else await assert.rejects(made, { message: /has not been added to the list of VolumesInUse/ });
  }
});

test("unused volumes are looked for every two seconds until the agent stops, then drivers' connections are closed", async () => {
  const did: string[] = [];
  const hanging = new Promise<void>(() => undefined);
  const part = (name: string) => ({
    collect() {
      did.push(`collect ${name}`);
      return hanging;
    },
    start: async () => void did.push(`start ${name}`),
    close: () => void did.push(`close ${name}`),
  });
  const background = newBackground({ clock, log });
  startVolumes({ csi: part("csi"), flex: part("flex") } as unknown as OpenedVolumes, background);
  const once = ["collect flex", "collect csi"];
  assert.deepEqual(did.splice(0), [...once, "start csi"]);
  await clock.advance(4_000);
  assert.deepEqual(did.splice(0), [...once, ...once]);
  await background.stop();
  await settle();
  assert.deepEqual(did, ["close csi"]);
});
