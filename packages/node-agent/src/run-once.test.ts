import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import type { AgentConfig } from "./agent-config.ts";
import { pendingPods, runOnceConfig, waitUntilRunning } from "./run-once.ts";
import type { PodSources } from "./sources/merge.ts";
import { aNodePod } from "./testing/builders.ts";

const never = new AbortController().signal;

test("--runonce ends when every pod runs", async () => {
  const clock = newFakeClock();
  let pending: string[] | undefined;
  let ended = false;
  const waiting = waitUntilRunning(() => pending, clock, never).then(() => {
    ended = true;
  });
  await clock.advance(1_000);
  pending = ["a", "b"];
  await clock.advance(2_000);
  pending = [];
  await clock.advance(3_999);
  assert.equal(ended, false);
  await clock.advance(1);
  await waiting;
});

test("--runonce fails after ten checks and names the pods that do not run", async () => {
  const clock = newFakeClock();
  const failure = waitUntilRunning(() => ["a_default", "b_default"], clock, never).catch((err: Error) => err.message);
  let hasFailed = false;
  void failure.then(() => {
    hasFailed = true;
  });
  await clock.advance(1_022_999);
  assert.equal(hasFailed, false);
  await clock.advance(1);
  assert.equal(await failure, "runonce failed: error running pods: [a_default b_default]");
});

test("--runonce fails while a source of pods does not report, and ends without an error when the agent is stopped", async () => {
  const clock = newFakeClock();
  const failure = waitUntilRunning(() => undefined, clock, never).catch((err: Error) => err.message);
  await clock.advance(1_023_000);
  assert.equal(await failure, "no pod manifest update after 1s");
  const stop = new AbortController();
  const stopped = waitUntilRunning(() => ["a_default"], clock, stop.signal);
  stop.abort();
  await stopped;
  assert.equal(clock.waiting, 0);
});

test("a pod is pending until it runs or has succeeded; before all sources have reported that is unknown", () => {
  const phases: Record<string, string> = { r: "Running", s: "Succeeded", f: "Failed", p: "Pending" };
  let isSynced = false;
  const list = [...Object.keys(phases), "new"].map((uid) => aNodePod({}, { uid, name: uid }));
  const sources = { allSynced: () => isSynced, list: () => list } as unknown as PodSources;
  const status = { get: (uid: string) => (phases[uid] === undefined ? undefined : { phase: phases[uid] }) };
  assert.equal(pendingPods(sources, status), undefined);
  isSynced = true;
  assert.deepEqual(pendingPods(sources, status), ["f_default", "p_default", "new_default"]);
});

test("--runonce uses neither the API server nor ports", () => {
  const config = { kubeconfig: "/k", bootstrapKubeconfig: "/b", enableServer: true, readOnlyPort: 1, healthzPort: 2, maxPods: 3 };
  assert.deepEqual(runOnceConfig(config as AgentConfig), {
    ...{ kubeconfig: "", bootstrapKubeconfig: "", enableServer: false, readOnlyPort: 0, healthzPort: 0, maxPods: 3 },
  });
});
