import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { FlowControlMetrics } from "./metrics.ts";

const prefix = "apiserver_flowcontrol_";
const of = 'priority_level="low",flow_schema="users"';

/** The page after these observations. */
async function pageAfter(observe: (metrics: FlowControlMetrics) => void): Promise<string> {
  const registry = newMetricsRegistry();
  observe(new FlowControlMetrics(registry, newFakeClock()));
  return registry.render();
}

/** Source: k8s.io/apiserver pkg/util/flowcontrol/metrics/metrics.go */
test("histograms of a flow have upstream's buckets", async () => {
  const page = await pageAfter((metrics) => {
    const flow = metrics.flow("low", "users");
    flow.waited(0.3, true);
    for (const histogram of [flow.queueLength, flow.executionSeconds, flow.watchers, flow.seats]) histogram.observe(3);
  });
  const bounds = (name: string, labels = of): number[] =>
    [...page.matchAll(/^(\w+)_bucket\{(.*?),?le="([^"]+)",?(.*)\} \d+$/gm)]
      .filter(([, family, before, , behind]) => family === prefix + name && [before, behind].filter(Boolean).join() === labels)
      .map(([, , , le]) => Number(le))
      .filter((le) => !Number.isNaN(le));
  const seconds = [0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30];
  assert.deepEqual(bounds("request_wait_duration_seconds", `${of},execute="true"`), seconds);
  assert.deepEqual(bounds("request_execution_seconds"), seconds);
  assert.deepEqual(bounds("request_queue_length_after_enqueue"), [0, 10, 25, 50, 100, 250, 500, 1000]);
  assert.deepEqual(bounds("watch_count_samples"), [0, 1, 10, 100, 1000, 10_000]);
  assert.deepEqual(bounds("work_estimated_seats"), [1, 2, 4, 10]);
});

test("each number of a flow and of a level is shown under its own name", async () => {
  const page = await pageAfter((metrics) => {
    const flow = metrics.flow("low", "users");
    flow.rejected("queue-full");
    for (const [i, counter] of [flow.dispatched, flow.noAccommodation].entries()) counter.inc(i + 2);
    for (const [i, gauge] of [flow.inQueue, flow.executing, flow.seatsInUse].entries()) gauge.set(i + 4);
    const level = metrics.level("low");
    level.limit.set(20);
    level.currentR.set(21);
    level.dispatched(22, 23, [24, 25], [26, 27]);
  });
  const own = 'priority_level="low"';
  for (const series of [
    `rejected_requests_total{${of},reason="queue-full"} 1`,
    `dispatched_requests_total{${of}} 2`,
    `request_dispatch_no_accommodation_total{${of}} 3`,
    `current_inqueue_requests{${of}} 4`,
    `current_executing_requests{${of}} 5`,
    `request_concurrency_in_use{${of}} 6`,
    `request_concurrency_limit{${own}} 20`,
    `current_r{${own}} 21`,
    `dispatch_r{${own}} 22`,
    `latest_s{${own}} 23`,
    `next_s_bounds{${own},bound="min"} 24`,
    `next_s_bounds{${own},bound="max"} 25`,
    `next_discounted_s_bounds{${own},bound="min"} 26`,
    `next_discounted_s_bounds{${own},bound="max"} 27`,
  ])
    assert.ok(page.includes(`\n${prefix}${series}\n`), `${series}\n${page}`);
});
