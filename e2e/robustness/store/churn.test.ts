import assert from "node:assert/strict";
import { test } from "node:test";
import { startOwnEtcd } from "@coxswain/apimachinery/testing/etcd";
import { startApiServers } from "./apiservers.ts";
import { churn, trendOf } from "./churn.ts";

/** COX_TEST_LONG: a quarter of an hour multiplied by its value. */
const long = process.env["COX_TEST_LONG"];
const rounds = Math.max(Number(long) || 1, 1);
const minutesOfRound = 15;
/** Time until the caches have reached their full size: they keep five minutes of history, and some data twice as long. */
const warmUpSeconds = 10 * 60;
const mostGrowth = 0.05;

test("a trend is recognised in samples that go up and down", () => {
  const samples = (rise: number) =>
    Array.from({ length: 40 }, (_, i) => ({ second: i * 30, residentMb: 500 + (i % 2 === 0 ? 20 : -20) + (rise * i) / 39 }));
  assert.ok(Math.abs(trendOf(samples(0))) < 0.01);
  assert.ok(Math.abs(trendOf(samples(50)) - 0.095) < 0.01);
});

test("a thousand pods that are replaced all the time do not make the server grow", async (t) => {
  if (long === undefined) return t.skip("long: only with ./cox test --long");
  const etcd = await startOwnEtcd(t);
  const apis = await startApiServers(t, 1, [etcd.endpoint], () => ["--etcd-compaction-interval=1m", "--event-ttl=5m"]);
  const churned = await churn({ apis, pods: 1_000, writesPerSecond: 40, minutes: minutesOfRound * rounds });
  const { samples, writes, failed, held, listed } = churned;
  const trend = trendOf(samples.filter(({ second }) => second >= warmUpSeconds));
  t.diagnostic(
    JSON.stringify({ writes, failed, growthPercent: Math.round(trend * 1_000) / 10, residentMb: samples.at(-1)?.residentMb }),
  );
  assert.equal(failed, 0);
  assert.equal(listed.length, 1_000);
  for (const versions of held) assert.deepEqual(versions, listed, "an informer holds what is there");
  assert.ok(trend <= mostGrowth, `grew by ${trend * 100} % after the first minutes`);
});
