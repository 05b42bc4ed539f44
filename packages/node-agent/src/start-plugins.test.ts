import assert from "node:assert/strict";
import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { newFeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { settle, waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { AgentConfig } from "./agent-config.ts";
import { newBackground } from "./background.ts";
import type { OpenedManagers } from "./resources/open-resource-managers.ts";
import { startPlugins } from "./start-plugins.ts";
import { startCsiDriver } from "./testing/csi-driver.ts";

async function bench(t: TestContext, gates: Readonly<Record<string, boolean>> = {}, hasCsi = false) {
  const rootDir = await mkdtemp(join(tmpdir(), "cox-plugins-"));
  t.after(() => rm(rootDir, { recursive: true, force: true }));
  const clock = newFakeClock();
  const background = newBackground({ clock, log: discardLogger });
  t.after(() => background.stop());
  const errors: string[] = [];
  const log = { ...discardLogger, error: (message: string) => void errors.push(message) };
  let started = 0;
  const taken: string[] = [];
  const takes = (kind: string) => ({
    validate: () => undefined,
    register: (name: string) => void taken.push(`${kind} ${name}`),
    deregister: () => undefined,
  });
  const devices = {
    async start() {
      started++;
      throw new Error("the path of the socket is too long");
    },
    handler: takes("DevicePlugin"),
  };
  const start = () =>
    startPlugins({
      config: { rootDir } as AgentConfig,
      featureGates: newFeatureGates("kubelet", gates),
      background,
      managers: { devices } as unknown as OpenedManagers,
      csiHandler: hasCsi ? takes("CSIPlugin") : undefined,
      activePods: () => [],
      metrics: newMetricsRegistry(),
      onResourcesRequest: () => undefined,
      clock,
      log,
    });
  const isThere = (path: string) =>
    stat(join(rootDir, path)).then(
      () => true,
      () => false,
    );
  return { rootDir, clock, background, errors, start, started: () => started, taken, isThere };
}

const socket = "pod-resources/kubelet.sock";

test("the pod resources API is served until the agent stops, also when device plugins cannot register", async (t) => {
  const { background, errors, start, started, isThere } = await bench(t);
  await start();
  assert.deepEqual([started(), errors], [1, ["Device plugins cannot register"]]);
  assert.equal(await isThere(socket), true);
  await background.stop();
  await settle();
  assert.equal(await isThere(socket), false);
});

test("without their gates neither device plugins nor the pod resources API are started", async (t) => {
  const { errors, start, started, isThere } = await bench(t, { DevicePlugins: false, KubeletPodResources: false });
  await start();
  assert.deepEqual([started(), errors, await isThere(socket)], [0, [], false]);
  await waitFor(() => isThere("plugins_registry"), { what: "the folder in which CSI drivers may register" });
});

test("the agent starts without the pod resources API when it cannot be served", async (t) => {
  const { rootDir, errors, start } = await bench(t);
  await writeFile(join(rootDir, "pod-resources"), "not a folder");
  await start();
  assert.equal(errors.at(-1), "The pod resources socket cannot be served");
});

for (const { gate, hasCsi, want } of [
  { gate: true, hasCsi: true, want: ["CSIPlugin a", "DevicePlugin b"] },
  { gate: false, hasCsi: true, want: ["CSIPlugin a"] },
  { gate: true, hasCsi: false, want: ["DevicePlugin b"] },
]) {
  test(`plugins in the registration folder, with DevicePlugins=${gate} and ${hasCsi ? "an" : "no"} API server: ${want}`, async (t) => {
    const { rootDir, clock, start, taken } = await bench(t, { DevicePlugins: gate }, hasCsi);
    const registryDir = join(rootDir, "plugins_registry");
    const drivers = [
      await startCsiDriver({ name: "a", registryDir, dir: join(rootDir, "a") }),
      await startCsiDriver({ name: "b", registryDir, dir: join(rootDir, "b"), type: "DevicePlugin" }),
    ];
    t.after(() => Promise.all(drivers.map((driver) => driver.stop())));
    await start();
    await waitFor(
      async () => {
        await clock.advance(1_000); // the registry's next look: a call of a plugin may take longer than its limit
        return drivers.every(({ verdicts }) => verdicts.length > 0);
      },
      { what: "both to be answered" },
    );
    assert.deepEqual(taken.toSorted(), want);
  });
}
