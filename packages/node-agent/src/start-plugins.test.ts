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

async function bench(t: TestContext, gates: Readonly<Record<string, boolean>> = {}) {
  const rootDir = await mkdtemp(join(tmpdir(), "cox-plugins-"));
  t.after(() => rm(rootDir, { recursive: true, force: true }));
  const clock = newFakeClock();
  const background = newBackground({ clock, log: discardLogger });
  t.after(() => background.stop());
  const errors: string[] = [];
  const log = { ...discardLogger, error: (message: string) => void errors.push(message) };
  let started = 0;
  const devices = {
    async start() {
      started++;
      throw new Error("the path of the socket is too long");
    },
    handler: {},
  };
  const start = () =>
    startPlugins({
      config: { rootDir } as AgentConfig,
      featureGates: newFeatureGates("kubelet", gates),
      background,
      managers: { devices } as unknown as OpenedManagers,
      csiHandler: undefined,
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
  return { rootDir, background, errors, start, started: () => started, isThere };
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
