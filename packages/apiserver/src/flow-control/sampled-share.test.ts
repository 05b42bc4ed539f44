import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newSampledShares } from "./sampled-share.ts";

function aShare() {
  const [clock, registry] = [newFakeClock(), newMetricsRegistry()];
  const share = newSampledShares(registry, clock, "load", ["phase"])("executing");
  share.setLimit(4);
  /** Cumulative `le: count` of the buckets where the count increases. */
  const buckets = async (labels: string): Promise<string[]> => {
    const lines = (await registry.render()).split("\n").filter((line) => line.includes("_bucket{") && line.includes(labels));
    const counts = lines.map((line) => [/le="([^"]*)"/.exec(line)?.[1], Number(line.split(" ").at(-1))] as const);
    return counts.filter(([, count], i) => count !== (counts[i - 1]?.[1] ?? 0)).map(([le, count]) => `${le}: ${count}`);
  };
  return { clock, share, registry, buckets };
}

test("each millisecond counts once, with what was taken when it began", async () => {
  const { clock, share, buckets } = aShare();
  share.add(1);
  await clock.advance(3); // three samples of 0.25
  share.add(2);
  await clock.advance(2); // two samples of 0.75
  assert.deepEqual(await buckets("load_samples_bucket"), ["0.3: 3", "0.8: 5"]);
});

test("samples taken before the limit changed are shares of the former limit", async () => {
  const { clock, share, buckets } = aShare();
  share.add(1);
  await clock.advance(3); // three samples of 0.25
  share.setLimit(1);
  await clock.advance(2); // two samples of 1
  assert.deepEqual(await buckets("load_samples_bucket"), ["0.3: 3", "1: 5"]);
});

test("the least and the most between two looks are kept apart, however short they were", async () => {
  const { clock, share, buckets } = aShare();
  share.add(4);
  share.add(-4);
  await clock.advance(1);
  assert.deepEqual(await buckets("load_samples_bucket"), ["0: 1"]);
  assert.deepEqual(await buckets('mark="low"'), ["0: 1"]);
  assert.deepEqual(await buckets('mark="high"'), ["1: 1"]);
  await clock.advance(5);
  assert.deepEqual(await buckets('mark="high"'), ["0: 5", "1: 6"]);
});

test("the least is that since the last look, not that of all time", async () => {
  const { clock, share, buckets } = aShare();
  share.add(4);
  await clock.advance(1);
  assert.deepEqual(await buckets('mark="low"'), ["0: 1"]);
  await clock.advance(1);
  assert.deepEqual(await buckets('mark="low"'), ["0: 1", "1: 2"]);
});

test("an hour without a change is sampled in one step, and a retired level is no longer sampled", async () => {
  const { clock, share, buckets } = aShare();
  await clock.advance(3_600_000);
  assert.deepEqual(await buckets("load_samples_bucket"), ["0: 3600000"]);
  share.retire();
  await clock.advance(1000);
  assert.deepEqual(await buckets("load_samples_bucket"), ["0: 3600000"]);
});
