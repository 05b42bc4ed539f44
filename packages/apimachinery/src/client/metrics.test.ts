import assert from "node:assert/strict";
import { test } from "node:test";
import { newMetricsRegistry } from "../process/metrics/registry.ts";
import { clientMetrics } from "./metrics.ts";

test("requests are counted by code, method and host; times are in seconds", async () => {
  const registry = newMetricsRegistry();
  const observer = clientMetrics(registry);
  observer.requested("GET", "api:6443", "200", 1_500);
  observer.requested("GET", "api:6443", "<error>", 500);
  observer.rateLimited("GET", "api:6443", 250);
  const pool = observer.pool?.("api:6443");
  for (const change of [1, 1, -1] as const) {
    pool?.connections(change);
    pool?.waiting(change);
  }
  pool?.waited(2_000);
  const page = await registry.render();
  for (const line of [
    'rest_client_requests_total{code="200",method="GET",host="api:6443"} 1',
    'rest_client_requests_total{code="<error>",method="GET",host="api:6443"} 1',
    'rest_client_request_duration_seconds_sum{verb="GET",host="api:6443"} 2',
    'rest_client_rate_limiter_duration_seconds_sum{verb="GET",host="api:6443"} 0.25',
    'rest_client_connections{host="api:6443"} 1',
    'rest_client_stream_queue_length{host="api:6443"} 1',
    'rest_client_stream_wait_duration_seconds_sum{host="api:6443"} 2',
  ])
    assert.ok(page.split("\n").includes(line), `${line}\n${page}`);
});
