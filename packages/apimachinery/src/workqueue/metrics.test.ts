import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "../process/clock/fake-clock.ts";
import { newMetricsRegistry } from "../process/metrics/registry.ts";
import { queueMetrics } from "./metrics.ts";
import { newRateLimitingQueue } from "./rate-limiting-queue.ts";

test("reports depth, queue duration and work duration", async () => {
  const clock = newFakeClock();
  const registry = newMetricsRegistry();
  const observer = queueMetrics(registry, clock)<string>("test");
  const queue = newRateLimitingQueue<string>({ clock, observer });
  queue.add("a");
  queue.add("b");
  await clock.advance(2000);
  await queue.get();
  await clock.advance(3000);
  const running = await registry.render();
  assert.match(running, /workqueue_depth\{name="test"\} 1/);
  assert.match(running, /workqueue_adds_total\{name="test"\} 2/);
  assert.match(running, /workqueue_queue_duration_seconds_sum\{name="test"\} 2/);
  assert.match(running, /workqueue_longest_running_processor_seconds\{name="test"\} 3/);
  queue.done("a");
  observer.retried();
  const finished = await registry.render();
  assert.match(finished, /workqueue_work_duration_seconds_sum\{name="test"\} 3/);
  assert.match(finished, /workqueue_unfinished_work_seconds\{name="test"\} 0/);
  assert.match(finished, /workqueue_retries_total\{name="test"\} 1/);
});

test("unfinished work is the sum of all running reconciles, the longest is reported apart", async () => {
  const clock = newFakeClock();
  const registry = newMetricsRegistry();
  const queue = newRateLimitingQueue<string>({ clock, observer: queueMetrics(registry, clock)<string>("test") });
  queue.add("a");
  queue.add("b");
  await queue.get();
  await clock.advance(2000);
  await queue.get();
  await clock.advance(3000);
  const page = await registry.render();
  assert.match(page, /workqueue_unfinished_work_seconds\{name="test"\} 8/);
  assert.match(page, /workqueue_longest_running_processor_seconds\{name="test"\} 5/);
  queue.done("a");
  assert.match(await registry.render(), /workqueue_unfinished_work_seconds\{name="test"\} 3/);
});
