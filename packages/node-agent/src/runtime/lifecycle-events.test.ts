import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newFakeRuntime } from "../testing/fake-runtime.ts";
import { labelNames } from "./labels.ts";
import { newLifecycleEvents } from "./lifecycle-events.ts";

function looking() {
  const clock = newFakeClock();
  const runtime = newFakeRuntime(clock);
  const changed: string[] = [];
  const tookMs: number[] = [];
  const events = newLifecycleEvents({
    runtime,
    clock,
    log: discardLogger,
    onChange: (uid) => void changed.push(uid),
    onRelist: (ms) => void tookMs.push(ms),
  });
  return { clock, runtime, changed, tookMs, events };
}

test("a container's start, exit and removal are each reported once for its pod", async () => {
  const { runtime, changed, events } = looking();
  assert.equal(events.pods(), undefined);
  const labels = (uid: string) => ({
    [labelNames.podUid]: uid,
    [labelNames.podName]: "web",
    [labelNames.podNamespace]: "default",
  });
  const [sandbox] = [
    await runtime.runPodSandbox({ metadata: { name: "web" }, labels: labels("a") }, ""),
    await runtime.runPodSandbox({ metadata: { name: "web" }, labels: labels("b") }, ""),
    await runtime.runPodSandbox({ metadata: { name: "another's" } }, ""),
  ];
  await events.relist();
  assert.deepEqual(changed.splice(0), ["a", "b"]);
  assert.deepEqual([...(events.pods()?.keys() ?? [])], ["a", "b"]);
  await events.relist();
  assert.deepEqual(changed, [], "nothing did");
  await runtime.stopPodSandbox(sandbox);
  await events.relist();
  assert.deepEqual(changed.splice(0), ["a"]);
  await runtime.removePodSandbox(sandbox);
  await events.relist();
  assert.deepEqual([changed, [...(events.pods()?.keys() ?? [])]], [["a"], ["b"]]);
});

test("the change of any of a pod's containers is reported", async () => {
  const { runtime, changed, events } = looking();
  const labels = { [labelNames.podUid]: "a" };
  const sandbox = await runtime.runPodSandbox({ metadata: { name: "web" }, labels }, "");
  const ids: string[] = [];
  for (const name of ["first", "second", "third"]) {
    ids.push(await runtime.createContainer(sandbox, { metadata: { name }, labels }, {}));
    await runtime.startContainer(ids.at(-1) ?? "");
  }
  await events.relist();
  changed.splice(0);
  for (const id of ids.toReversed()) {
    runtime.exit(id, 0);
    await events.relist();
    assert.deepEqual(changed.splice(0), ["a"]);
  }
});

test("a relist that is three minutes old is unhealthy, whatever the wall clock is set to", async () => {
  const { clock, events } = looking();
  assert.equal(events.problem(), "PLEG is not healthy: pleg has yet to be successful");
  await events.relist();
  clock.setOn(3_600_000);
  await clock.advance(180_000);
  assert.equal(events.problem(), undefined);
  await events.relist();
  await clock.advance(180_000);
  assert.equal(events.problem(), undefined, "the last look counts");
  await clock.advance(1_000);
  assert.equal(events.problem(), "PLEG is not healthy: pleg was last seen active 3m1s ago; threshold is 3m0s");
});

test("a failed relist generates no events", async () => {
  const { clock, runtime, events } = looking();
  await events.relist();
  runtime.listContainers = () => Promise.reject(new Error("away"));
  await clock.advance(180_000);
  await assert.rejects(events.relist(), /away/);
  await clock.advance(1_000);
  assert.match(events.problem() ?? "", /last seen active 3m1s ago/);
});

test("the runtime is listed every second until the agent stops, also after a failure; how long each list took is reported", async () => {
  const { clock, runtime, tookMs, events } = looking();
  const { listContainers } = runtime;
  let lists = 0;
  runtime.listContainers = async () => {
    if (++lists === 2) throw new Error("away");
    await clock.sleep(250);
    return listContainers();
  };
  const stop = new AbortController();
  const running = events.run(stop.signal);
  await clock.advance(250);
  assert.deepEqual([lists, tookMs.splice(0)], [1, [250]]);
  await clock.advance(999);
  assert.equal(lists, 1);
  await clock.advance(1);
  assert.deepEqual([lists, tookMs], [2, []]);
  await clock.advance(1_250);
  assert.deepEqual([lists, tookMs], [3, [250]]);
  stop.abort();
  await running;
  assert.equal(clock.waiting, 0);
});
