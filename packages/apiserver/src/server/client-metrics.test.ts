import assert from "node:assert/strict";
import { test } from "node:test";
import { startTestServer } from "../testing/start-test-server.ts";

test("requests of the server's own clients and calls to etcd are counted under upstream's names", async (t) => {
  const server = await startTestServer(t);
  await server.request("POST", "/api/v1/namespaces/default/configmaps", { metadata: { name: "a" } });
  const metrics = (await server.request("GET", "/metrics")).text;
  const seen = (series: string): number =>
    Number(
      metrics
        .split("\n")
        .find((line) => line.startsWith(`${series} `))
        ?.slice(series.length + 1) ?? Number.NaN,
    );
  const txn = 'grpc_type="unary",grpc_service="etcdserverpb.KV",grpc_method="Txn"';
  assert.ok(seen(`grpc_client_started_total{${txn}}`) > 0);
  assert.equal(seen(`grpc_client_handled_total{${txn},grpc_code="OK"}`), seen(`grpc_client_msg_received_total{${txn}}`));
  const watch = 'grpc_type="bidi_stream",grpc_service="etcdserverpb.Watch",grpc_method="Watch"';
  assert.ok(seen(`grpc_client_msg_received_total{${watch}}`) > 0);
  assert.ok(seen('rest_client_requests_total{code="201",method="POST",host="loopback"}') > 0);
  assert.ok(seen('rest_client_request_duration_seconds_count{verb="POST",host="loopback"}') > 0);
});
