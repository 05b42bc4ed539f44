/** Metrics of calls to etcd and to webhooks, whose labels come from elsewhere. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newGrpcMetrics } from "./grpc-metrics.ts";
import { newWebhookMetrics } from "./webhook-metrics.ts";

test("calls to etcd are counted by method and, when they have ended, by code", async () => {
  const registry = newMetricsRegistry({});
  const calls = newGrpcMetrics(registry);
  for (const code of [0, 14, 14, 99]) {
    const call = calls("/etcdserverpb.KV/Range", "unary");
    call.started();
    call.sent();
    if (code === 0) call.received();
    call.handled(code);
  }
  calls("/etcdserverpb.Watch/Watch", "bidi_stream").started();
  const range = 'grpc_type="unary",grpc_service="etcdserverpb.KV",grpc_method="Range"';
  const page = await registry.render();
  for (const series of [
    `grpc_client_started_total{${range}} 4`,
    `grpc_client_msg_sent_total{${range}} 4`,
    `grpc_client_msg_received_total{${range}} 1`,
    `grpc_client_handled_total{${range},grpc_code="OK"} 1`,
    `grpc_client_handled_total{${range},grpc_code="Unavailable"} 2`,
    `grpc_client_handled_total{${range},grpc_code="Code(99)"} 1`,
    'grpc_client_started_total{grpc_type="bidi_stream",grpc_service="etcdserverpb.Watch",grpc_method="Watch"} 1',
  ])
    assert.ok(page.includes(`\n${series}\n`), `${series}\n${page}`);
});

test("codes of webhooks above 600 are one series, since webhooks choose them", async () => {
  const registry = newMetricsRegistry({});
  const metrics = newWebhookMetrics(registry);
  for (const code of [599, 600, 601, 70_000]) {
    metrics.called("w.example.com", "admit", "CREATE", { seconds: 0.5, code, rejected: code > 600 });
    metrics.rejected("w.example.com", "admit", "CREATE", "no_error", code);
  }
  const page = await registry.render();
  const series = (metric: string): string[] =>
    page
      .split("\n")
      .filter((line) => line.startsWith(`${metric}{`))
      .map((line) => /(?:rejection_)?code="(\d+)".* (\d+)$/.exec(line)?.slice(1).join(": ") ?? line)
      .sort();
  assert.deepEqual(series("apiserver_admission_webhook_request_total"), ["599: 1", "600: 1", "600: 2"]);
  assert.deepEqual(series("apiserver_admission_webhook_rejection_count"), ["599: 1", "600: 3"]);
  assert.match(page, /^apiserver_admission_webhook_admission_duration_seconds_sum\{[^}]*rejected="true"[^}]*\} 1$/m);
});
