import assert from "node:assert/strict";
import { test } from "node:test";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { startTestServer } from "../testing/start-test-server.ts";

test("hidden metrics are shown on demand, label values that are not allowed are folded", async (t) => {
  const server = await startTestServer(t, [
    "--etcd-count-metric-poll-period=200ms",
    "--show-hidden-metrics-for-version=1.22",
    "--allow-metric-labels=apiserver_request_total,verb=LIST",
  ]);
  const metrics = async (): Promise<string> => (await server.request("GET", "/metrics")).text;
  await server.request("GET", "/api/v1/namespaces");
  await server.request("GET", "/api/v1/namespaces/default");
  assert.match(await metrics(), /^# HELP etcd_object_counts \[ALPHA\] \(Deprecated since 1\.22\.0\) Number of stored objects /m);
  await waitFor(async () => /^etcd_object_counts\{resource="namespaces"\} [1-9]/m.test(await metrics()), { what: "the count" });
  const verbs = [...(await metrics()).matchAll(/^apiserver_request_total\{verb="(\w+)"/gm)].map(([, verb]) => verb);
  assert.deepEqual(new Set(verbs), new Set(["LIST", "unexpected"]));
});

test("DELETE /metrics starts the counts again, unless --profiling is off; any other method reads", async (t) => {
  for (const profiling of [true, false]) {
    const server = await startTestServer(t, [`--profiling=${profiling}`]);
    const listed = (text: string): string | undefined =>
      /^apiserver_request_duration_seconds_count\{verb="LIST",[^}]*resource="namespaces"[^}]*\} (\d+)/m.exec(text)?.[1];
    await server.request("GET", "/api/v1/namespaces");
    assert.equal(Number(listed((await server.request("POST", "/metrics")).text)) > 0, true);
    const { code, text, headers } = await server.request("DELETE", "/metrics");
    assert.equal(code, 200);
    if (profiling) {
      assert.deepEqual([text, headers["content-type"]], ["metrics reset\n", "text/plain; charset=utf-8"]);
      assert.equal(listed((await server.request("GET", "/metrics")).text), "0");
      assert.match((await server.request("GET", "/metrics")).text, /^kubernetes_build_info\{.*\} 1$/m);
    } else assert.match(text, /^# HELP /m);
  }
});
