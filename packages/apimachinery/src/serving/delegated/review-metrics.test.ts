import assert from "node:assert/strict";
import { test } from "node:test";
import { forbidden } from "../../objects/errors/status-error.ts";
import { newFakeClock } from "../../process/clock/fake-clock.ts";
import { newMetricsRegistry } from "../../process/metrics/registry.ts";
import { newReviewMetrics } from "./review-metrics.ts";

test("reviews are counted and timed by the answer's code, those without an answer as <error>", async () => {
  const [registry, clock] = [newMetricsRegistry(), newFakeClock()];
  const measured = newReviewMetrics(registry, "authz", clock);
  const taking = async <T>(ms: number, outcome: Promise<T>): Promise<T> => {
    outcome.catch(() => {});
    await clock.advance(ms);
    return outcome;
  };
  assert.equal(await measured(() => taking(500, Promise.resolve("review"))), "review");
  const refusal = forbidden({ group: "", resource: "" }, "", "no");
  await assert.rejects(
    measured(() => taking(2_000, Promise.reject(refusal))),
    refusal,
  );
  const gone = new Error("gone");
  await assert.rejects(
    measured(() => taking(0, Promise.reject(gone))),
    gone,
  );
  const lines = (await registry.render()).split("\n");
  const shown = (what: string): string[] => lines.filter((line) => line.startsWith(`apiserver_delegated_authz_request_${what}`));
  assert.deepEqual(shown("total").sort(), [
    'apiserver_delegated_authz_request_total{code="201"} 1',
    'apiserver_delegated_authz_request_total{code="403"} 1',
    'apiserver_delegated_authz_request_total{code="<error>"} 1',
  ]);
  assert.deepEqual(shown("duration_seconds_sum").sort(), [
    'apiserver_delegated_authz_request_duration_seconds_sum{code="201"} 0.5',
    'apiserver_delegated_authz_request_duration_seconds_sum{code="403"} 2',
    'apiserver_delegated_authz_request_duration_seconds_sum{code="<error>"} 0',
  ]);
});
