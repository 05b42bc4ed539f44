import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { newMetricsRegistry } from "./registry.ts";

const registry = newMetricsRegistry({ processMetrics: true });

async function delays(): Promise<Record<string, number>> {
  const found = (await registry.render()).matchAll(/^nodejs_eventloop_lag_?(\w*?)_?seconds (.*)$/gm);
  return Object.fromEntries(Array.from(found, ([, part = "", value]) => [part, Number(value)]));
}

test("the longest delay of a turn is reported once, and waiting for events does not count", async () => {
  const begin = await delays();
  assert.deepEqual(Object.keys(begin), ["", "min", "max", "mean", "stddev", "p50", "p90", "p99"]);
  await delay(1); // the turn below is a separate iteration
  const end = performance.now() + 150;
  while (performance.now() < end);
  await delay(1);
  const blocked = await delays();
  for (const part of ["max", "p99"]) assert.ok((blocked[part] ?? 0) > 0.14, `${part} ${blocked[part]}`);
  await delay(600);
  const idle = await delays();
  assert.ok((idle["max"] ?? 1) < 0.5, `max ${idle["max"]} after waiting`);
});

test("measuring does not wake an idle process", async () => {
  const begin = process.resourceUsage().voluntaryContextSwitches;
  await delay(500);
  const switches = process.resourceUsage().voluntaryContextSwitches - begin;
  assert.ok(switches < 25, `${switches} in half a second, 50 by a timer of 10 ms`);
});
