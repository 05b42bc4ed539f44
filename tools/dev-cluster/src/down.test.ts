import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { haveEnded, signalAll, startedBySupervisor } from "./cluster-processes.ts";
import { down } from "./down.ts";
import type { Progress } from "./failure.ts";
import { logFile, start } from "./processes.ts";
import { readSettings } from "./read-settings.ts";
import type { Settings } from "./settings.ts";
import { ensureSupervisor, supervisorPid } from "./supervisor-client.ts";
import { readState } from "./supervisor-state.ts";

/** A cluster without root's part, whose supervisor runs; what is left of it is killed after the test. */
async function newCluster(t: TestContext): Promise<{ settings: Settings; steps: string[]; progress: Progress }> {
  const folder = mkdtempSync(join(tmpdir(), "cox-down-"));
  const own = readSettings(join(import.meta.dirname, "..", "..", ".."), { COX_STATE: join(folder, "state") });
  const settings = { ...own, run: join(folder, "run"), asRoot: false, withNode: false };
  t.after(async () => {
    const left = startedBySupervisor(settings.id);
    signalAll(left, "SIGKILL");
    await haveEnded(left, 5_000);
    rmSync(folder, { recursive: true, force: true });
  });
  await ensureSupervisor(settings);
  const steps: string[] = [];
  return { settings, steps, progress: { step: (text) => void steps.push(text), signal: new AbortController().signal } };
}

const shell = (name: string, script: string) => ({ name, command: "sh", args: ["-c", script] });
const written = async (settings: Settings, name: string): Promise<void> => {
  for (let tries = 0; !existsSync(logFile(settings, name)) || readFileSync(logFile(settings, name), "utf8") === ""; tries++) {
    assert.ok(tries < 1_000, `${name} has not started`);
    await delay(10);
  }
};

test("down ends the supervisor first, then the daemons, the API server and etcd last; each has its time to end", async (t) => {
  const { settings, steps, progress } = await newCluster(t);
  const slowly = "trap 'sleep 0.3; touch $0.ended; exit' TERM; echo; while :; do sleep 0.05; done";
  await start(settings, { name: "etcd", command: "sh", args: ["-c", slowly, "etcd"] });
  await start(settings, { name: "kube-apiserver", command: "sh", args: ["-c", slowly, "kube-apiserver"] });
  const paused = await start(settings, { name: "kube-scheduler", command: "sh", args: ["-c", slowly, "kube-scheduler"] });
  for (const name of ["etcd", "kube-apiserver", "kube-scheduler"]) await written(settings, name);
  process.kill(paused as number, "SIGSTOP");
  mkdirSync(join(settings.state, "pki"));
  await down(settings, progress, false);
  assert.deepEqual(steps, ["stopped kube-scheduler", "stopped kube-apiserver", "stopped etcd", "nothing of it runs any more"]);
  for (const name of ["etcd", "kube-apiserver", "kube-scheduler"])
    assert.ok(existsSync(join(settings.state, `${name}.ended`)), name);
  assert.deepEqual([startedBySupervisor(settings.id), supervisorPid(settings)], [[], undefined]);
  const states = Object.values(readState(settings)?.processes ?? {}).map(({ state }) => [state.phase, state.pid, state.lastEnd]);
  assert.deepEqual(states, Array(3).fill(["stopped", undefined, undefined]), "none is recorded as having ended by itself");
  assert.equal(existsSync(settings.run), false, "the folder of sockets is gone");
  assert.deepEqual(readdirSync(settings.state).toSorted(), [
    "etcd.ended",
    "kube-apiserver.ended",
    "kube-scheduler.ended",
    "logs",
    "pki",
    "run",
  ]);
  steps.length = 0;
  await down(settings, progress, false);
  assert.deepEqual(steps, ["nothing of it runs any more"], "a second one finds nothing to stop");
});

test("down kills what does not end, and finds what runs without the state file", async (t) => {
  const { settings, steps, progress } = await newCluster(t);
  await start(settings, shell("etcd", "trap '' TERM; echo; while :; do sleep 1; done"));
  await written(settings, "etcd");
  rmSync(join(settings.state, "run", "supervisor.json"));
  const began = performance.now();
  await down(settings, progress, false, 100);
  assert.ok(performance.now() - began < 10_000, "it does not wait for what it could not end");
  assert.deepEqual(steps, ["stopped etcd", "nothing of it runs any more"]);
  assert.deepEqual(startedBySupervisor(settings.id), []);
});

test("down --purge removes the cluster's own files and no others", async (t) => {
  const { settings, steps, progress } = await newCluster(t);
  const folders = ["containerd", "etcd", "kubelet", "logs", "manifests", "pki", "run", "volumes"];
  const files = [
    "admin.conf",
    "controller-manager.conf",
    "scheduler.conf",
    "kubelet.conf",
    "services.conf",
    "cluster.json",
    "image.tar",
  ];
  for (const name of [...folders, "kubectl", "clusters"]) mkdirSync(join(settings.state, name, "a"), { recursive: true });
  for (const name of [...files, "lock", "mine"]) writeFileSync(join(settings.state, name), "");
  await down(settings, progress, false);
  assert.equal(readdirSync(settings.state).length, folders.length + files.length + 4);
  await down(settings, progress, true);
  assert.deepEqual(readdirSync(settings.state).toSorted(), ["clusters", "kubectl", "lock", "mine"]);
  assert.equal(steps.at(-1), "the cluster's files are removed");
});

test("down ends what is no process of its list too: its descendants, and what an earlier version has started", async (t) => {
  const { settings, steps, progress } = await newCluster(t);
  await start(settings, shell("service-routes", "exec sleep 600"));
  await start(settings, shell("other", "setsid sleep 600 & sleep 600 & echo; wait"));
  await written(settings, "other");
  await down(settings, progress, false);
  assert.deepEqual(steps, ["stopped service-routes", "nothing of it runs any more"]);
  assert.deepEqual(startedBySupervisor(settings.id), []);
});
