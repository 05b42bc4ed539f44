import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { atOnce, type Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { timedSteps, untimed } from "./framework/cycle-timer.ts";
import { unresolvable } from "./framework/status.ts";
import { newSchedulerMetrics } from "./metrics.ts";
import { aTestPod } from "./testing/test-cluster.ts";

test("a pod's scheduling takes from its first enqueue on; the last one does not count", async () => {
  const registry = newMetricsRegistry();
  const metrics = newSchedulerMetrics(registry, newFakeClock());
  const entry = {
    pod: aTestPod("web"),
    firstQueuedAtMs: 500,
    queuedAtMs: 1_900,
    attempts: 3,
    unschedulablePlugins: new Set("x"),
  };
  metrics.podScheduled(entry, 2_000);
  metrics.podScheduled({ ...entry, attempts: 14 }, 2_000);
  metrics.podScheduled({ ...entry, attempts: 15 }, 2_000);
  const text = await registry.render();
  for (const attempts of ["3", "14", "15\\+"])
    assert.match(text, new RegExp(`^scheduler_pod_scheduling_duration_seconds_sum\\{attempts="${attempts}"\\} 1.5$`, "m"));
  assert.match(text, /^scheduler_pod_scheduling_attempts_sum 32$/m);
});

test("an attempt counts in all three metrics, under its result and profile", async () => {
  const registry = newMetricsRegistry();
  const clock = newFakeClock();
  const metrics = newSchedulerMetrics(registry, clock);
  const beginMs = clock.monotonic();
  await clock.advance(2_000);
  metrics.attempted("unschedulable", "p", beginMs);
  const text = await registry.render();
  const labels = '{result="unschedulable",profile="p"}';
  for (const line of [
    `scheduler_schedule_attempts_total${labels} 1`,
    `scheduler_scheduling_attempt_duration_seconds_sum${labels} 2`,
    `scheduler_e2e_scheduling_duration_seconds_sum${labels} 2`,
  ])
    assert.ok(text.split("\n").includes(line), line);
});

test("single plugins are measured in one cycle of ten", () => {
  const sampled = [0, 0.099, 0.1, 0.99].map((roll) => {
    const metrics = newSchedulerMetrics(newMetricsRegistry(), newFakeClock(), () => roll);
    return metrics.cycle("default-scheduler")?.plugins !== undefined;
  });
  assert.deepEqual(sampled, [true, true, false, false]);
});

test("an extension point is measured until its promise settles, with the status Error when that rejects", async () => {
  const registry = newMetricsRegistry();
  const clock = newFakeClock();
  const timer = newSchedulerMetrics(registry, clock).cycle("p");
  const held = Promise.withResolvers<never>();
  const failing = timer?.point("PreBind", () => held.promise).catch(() => {});
  await clock.advance(3_000);
  held.reject(new Error("away"));
  await failing;
  const labels = 'extension_point="PreBind",status="Error",profile="p"';
  assert.match(
    await registry.render(),
    new RegExp(`^scheduler_framework_extension_point_duration_seconds_sum\\{${labels}\\} 3$`, "m"),
  );
});

test("the sizes of the queues and of the cache are reported, each under its name", async () => {
  const registry = newMetricsRegistry();
  const queues = { active: 1, backoff: 2, unschedulable: 3 };
  const cache = { nodes: 4, pods: 5, assumedPods: 6 };
  newSchedulerMetrics(registry, newFakeClock()).readSizes(() => ({ queue: queues, cache }));
  const text = await registry.render();
  for (const [name, size] of Object.entries(queues))
    assert.match(text, new RegExp(`^scheduler_pending_pods\\{queue="${name}"\\} ${size}$`, "m"));
  for (const [type, size] of [
    ["nodes", 4],
    ["pods", 5],
    ["assumed_pods", 6],
  ])
    assert.match(text, new RegExp(`^scheduler_scheduler_cache_size\\{type="${type}"\\} ${size}$`, "m"));
});

test("an extension point in steps is counted by its outcome: a refusal, a success or an error", async () => {
  const registry = newMetricsRegistry();
  const timer = newSchedulerMetrics(registry, newFakeClock()).cycle("p") ?? untimed;
  function* steps<T>(result: () => T): Steps<T> {
    yield;
    return result();
  }
  const fail = (): never => {
    throw new Error("ill");
  };
  const refusal = unresolvable("no");
  assert.equal(
    atOnce(
      timedSteps(
        timer,
        "PreFilter",
        steps(() => refusal),
      ),
    ),
    refusal,
  );
  assert.deepEqual(
    atOnce(
      timedSteps(
        timer,
        "Score",
        steps(() => [1]),
      ),
    ),
    [1],
  );
  for (const each of [timer, untimed]) assert.throws(() => atOnce(timedSteps(each, "Filter", steps(fail))), /ill/);
  await settle();
  const page = await registry.render();
  for (const [point, status] of [
    ["PreFilter", "UnschedulableAndUnresolvable"],
    ["Score", "Success"],
    ["Filter", "Error"],
  ]) {
    const labels = `extension_point="${point}",status="${status}",profile="p"`;
    assert.ok(page.includes(`scheduler_framework_extension_point_duration_seconds_count{${labels}} 1\n`), page);
  }
});

test("outcomes of a point and of a plugin are counted apart, whichever comes first, and those of each profile", async () => {
  const registry = newMetricsRegistry();
  const metrics = newSchedulerMetrics(registry, newFakeClock(), () => 0);
  const refusal = unresolvable("no");
  for (const profile of ["p", "q"]) {
    const timer = metrics.cycle(profile) ?? untimed;
    for (const status of profile === "p" ? [refusal, undefined, undefined] : [undefined, refusal]) {
      timer.point("Filter", () => status);
      timer.plugins?.plugin("Own", "Filter", status, 0);
    }
  }
  const page = await registry.render();
  const count = (name: string, labels: string) =>
    Number(new RegExp(`^scheduler_${name}_duration_seconds_count\\{${labels}\\} (\\d+)$`, "m").exec(page)?.[1]);
  const ofPoint = (profile: string, status: string) =>
    count("framework_extension_point", `extension_point="Filter",status="${status}",profile="${profile}"`);
  assert.deepEqual([ofPoint("p", refusal.code), ofPoint("p", "Success")], [1, 2]);
  assert.deepEqual([ofPoint("q", refusal.code), ofPoint("q", "Success")], [1, 1]);
  const ofPlugin = (status: string) => count("plugin_execution", `plugin="Own",extension_point="Filter",status="${status}"`);
  assert.deepEqual([ofPlugin(refusal.code), ofPlugin("Success")], [2, 3]);
});
