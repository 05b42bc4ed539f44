import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { newFeatureGates } from "@coxswain/apimachinery/flags/feature-gates";
import { parseFlags } from "@coxswain/apimachinery/flags/flags";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newUnlimitedTurns } from "@coxswain/apimachinery/process/event-loop/turns";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { completeConfig } from "./config.ts";
import { kubeControllerManager } from "./flags.ts";
import { runManager } from "./manager.ts";
import { startSmallApi } from "./testing/small-api.ts";

const minute = 60_000;

/** A manager with a fake clock; `written` counts what a controller wrote into the only namespace. */
async function startManager(t: TestContext, ...argv: string[]) {
  const { host, writes } = await startSmallApi(t);
  const clock = newFakeClock();
  const ending = new AbortController();
  const config = completeConfig(parseFlags(kubeControllerManager.flags, ["--leader-elect=false", ...argv]).values);
  const running = runManager({
    config: { ...config, rootCa: "PEM" },
    clientConfig: { host },
    log: discardLogger,
    clock,
    metrics: newMetricsRegistry(),
    featureGates: newFeatureGates("kube-controller-manager", {}),
    turns: newUnlimitedTurns(),
    signal: ending.signal,
  });
  t.after(async () => {
    ending.abort();
    await running;
  });
  const written = (resource: string): number => writes.filter(({ path }) => path === `/api/v1/namespaces/web/${resource}`).length;
  return { clock, written };
}

test("--min-resync-period: controllers see everything again after between once and twice that", async (t) => {
  const { clock, written } = await startManager(t, "--controllers=root-ca-cert-publisher", "--min-resync-period=1m");
  await waitFor(() => written("configmaps") === 1, { what: "the first look" });
  await clock.advance(minute - 1);
  assert.equal(written("configmaps"), 1);
  await clock.advance(minute);
  await waitFor(() => written("configmaps") === 2, { what: "the second look" });
});

test("--controller-start-interval: each controller starts so long after the one before", async (t) => {
  const flags = ["--controllers=serviceaccount,root-ca-cert-publisher", "--controller-start-interval=1m"];
  const { clock, written } = await startManager(t, ...flags);
  const counts = (): number[] => [written("serviceaccounts"), written("configmaps")];
  await waitFor(() => counts().includes(1), { what: "the first controller" });
  await clock.advance(minute - 1);
  assert.deepEqual(counts().toSorted(), [0, 1]);
  await clock.advance(1);
  await waitFor(() => !counts().includes(0), { what: "the second controller" });
});
