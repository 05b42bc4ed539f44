import assert from "node:assert/strict";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";
import { newMetricsRegistry } from "../process/metrics/registry.ts";
import { longestTurnOf } from "../testing/cpu-time.ts";
import { startHttp2Bench } from "../testing/http2-bench.ts";
import { getFrame, windowFrame } from "../transport/http2/testing/raw-frames.ts";
import type { Exchange } from "./exchange.ts";
import { answerMetrics } from "./metrics-page.ts";

/** About as many series as an API server with 150 custom resources watched by each controller: 15 MB of text. */
function largeRegistry() {
  const registry = newMetricsRegistry({ processMetrics: true });
  const labels = ["verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component"];
  const buckets = Array.from({ length: 37 }, (_, at) => (at + 1) / 20);
  const durations = registry.histogram({ name: "apiserver_request_duration_seconds", help: "h", labels, buckets });
  for (let at = 0; at < 2400; at++) {
    durations.labels("LIST", "", "example.com", "v1", `resources-${at}`, "", "cluster", "apiserver").observe(0.3, at);
  }
  return registry;
}

test("metrics of 150 definitions are rendered in slices", async (t) => {
  const registry = largeRegistry();
  const bench = await startHttp2Bench(t, (exchange) => answerMetrics(exchange, registry));
  let bytes = 0;
  const longest = await longestTurnOf(100, async () => {
    bytes = 0;
    for await (const chunk of registry.chunks()) bytes += chunk.length;
  });
  assert.ok(bytes > 12e6, `${bytes} bytes`);
  assert.ok(longest < 300, `a turn of ${longest} ms`);
  const client = await bench.connect();
  client.send(windowFrame(0, 2 ** 30));
  const served = await longestTurnOf(100, async (round) => {
    const id = 1 + 2 * round;
    client.send(getFrame(id, "/metrics"), windowFrame(id, 2 ** 30));
    const { status, body } = await client.answer(id);
    assert.equal(status, 200);
    assert.ok(body.length > 12e6);
  });
  assert.ok(served < 300, `a turn of ${served} ms`);
});

test("metrics are compressed for clients that accept that, and have the same content", async (t) => {
  const registry = newMetricsRegistry();
  registry
    .counter({ name: "requests", help: "h", labels: ["code"] })
    .labels("200")
    .inc(3);
  const bench = await startHttp2Bench(t, (exchange) => answerMetrics(exchange, registry));
  const client = await bench.connect();
  client.send(getFrame(1, "/metrics"), getFrame(3, "/metrics", [["accept-encoding", "gzip"]]));
  const [plain, packed] = [await client.answer(1), await client.answer(3)];
  assert.equal(gunzipSync(packed.body).toString(), plain.body.toString());
  assert.match(plain.body.toString(), /^requests\{code="200"\} 3$/m);
});

for (const isGone of [true, false]) {
  test(`a failure is ${isGone ? "of no interest when the client is gone" : "thrown while the client waits"}`, async () => {
    const failing = {
      contentType: "text/plain",
      async *chunks(): AsyncGenerator<string> {
        yield "a 1\n";
        throw new Error("no metrics");
      },
    };
    const exchange = { headers: {}, isGone, stream: () => ({ write: () => true }) };
    const answering = answerMetrics(exchange as unknown as Exchange, failing); // cast: what plain pages use
    if (isGone) await answering;
    else await assert.rejects(answering, /no metrics/);
  });
}
