import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import type { Cri } from "../runtime/cri-schema.ts";
import { RuntimeError } from "../runtime/runtime.ts";
import { newFakeRuntime } from "../testing/fake-runtime.ts";
import { newRuntimeHealth } from "./runtime-health.ts";

function watched() {
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  const control: { away: boolean; requested: number; conditions?: Cri<"RuntimeCondition">[] } = { away: false, requested: 0 };
  const health = newRuntimeHealth({
    clock,
    runtime: {
      ...runtime,
      async status() {
        control.requested++;
        if (control.away) throw new RuntimeError("Unavailable", "connection refused");
        return control.conditions === undefined ? runtime.status() : { conditions: control.conditions };
      },
    },
  });
  return { clock, runtime, control, health };
}

test("before the runtime's first answer it is not ready and its network state unknown", () => {
  const { health } = watched();
  assert.deepEqual(
    [health.silence(), health.problem(), health.networkProblem(), health.version(), health.isReady()],
    ["container runtime status check may not have completed yet", undefined, "network state unknown", undefined, false],
  );
});

test("a runtime is reported as down after 30 seconds without an answer", async () => {
  const { clock, control, health } = watched();
  await health.check();
  control.away = true;
  await clock.advance(29_999);
  await assert.rejects(health.check(), /connection refused/);
  assert.deepEqual([health.silence(), health.problem(), health.isReady()], [undefined, undefined, false]);
  assert.deepEqual(health.version(), { name: "containerd", version: "Unknown" });
  await clock.advance(1);
  assert.equal(health.silence(), "container runtime is down");
  control.away = false;
  await health.check();
  assert.deepEqual([health.silence(), health.version()?.version], [undefined, "fake"]);
});

test("a runtime without network reports the network's reason, and is ready itself", async () => {
  const { runtime, health } = watched();
  runtime.networkReady = false;
  await health.check();
  assert.equal(
    health.networkProblem(),
    "NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized",
  );
  assert.deepEqual([health.silence(), health.isReady()], [undefined, true]);
});

test("a runtime whose RuntimeReady condition is false or missing is a problem, reported with its message", async () => {
  const { clock, control, health } = watched();
  await health.check();
  const ready = { type: "RuntimeReady", status: true, reason: "", message: "" };
  const notReady = { type: "RuntimeReady", status: false, reason: "Starting", message: "not yet" };
  control.conditions = [{ ...ready, type: "NetworkReady" }, notReady];
  await clock.advance(29_999);
  await health.check();
  const text = "container runtime not ready: RuntimeReady=false reason:Starting message:not yet";
  assert.deepEqual([health.problem(), health.networkProblem(), health.isReady()], [text, undefined, false]);
  await clock.advance(1);
  assert.equal(health.silence(), "container runtime is down", "such an answer is none");
  control.conditions = [ready];
  await health.check();
  assert.deepEqual(
    [health.problem(), health.networkProblem(), health.isReady(), health.silence()],
    [undefined, "NetworkReady=false reason: message:", true, undefined],
  );
  control.conditions = [];
  await health.check();
  assert.equal(health.problem(), "container runtime not ready: RuntimeReady=false reason: message:");
});
