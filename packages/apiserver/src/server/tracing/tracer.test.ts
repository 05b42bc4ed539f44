import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import type { GrpcCalls } from "@coxswain/apimachinery/transport/grpc/calls";
import { LoopbackExchange } from "../../loopback/exchange.ts";
import { currentSpan, parseTraceparent } from "../../request/trace.ts";
import type { Span } from "./otlp.ts";
import { newTracer } from "./tracer.ts";

/** A tracer that samples everything unless stated, and what it exports. */
function aTracer(perMillion = 1_000_000) {
  const clock = newFakeClock();
  const spans: Span[] = [];
  const tracer = newTracer({ add: (span) => void spans.push(span) }, perMillion, clock);
  const counted: string[] = [];
  const counting: GrpcCalls = (path) => ({
    started: () => void counted.push(`${path} started`),
    sent: () => void counted.push("sent"),
    received: () => void counted.push("received"),
    handled: (code) => void counted.push(`ended with ${code}`),
  });
  return { clock, spans, tracer, counted, calls: tracer.calls(counting) };
}

const anExchange = (headers: Record<string, string> = {}): LoopbackExchange =>
  new LoopbackExchange({ method: "GET", path: "/api?limit=1", headers });

for (const { code, failed } of [
  { code: 200, failed: false },
  { code: 499, failed: false },
  { code: 500, failed: true },
]) {
  test(`the span of a request that is answered with ${code} has ${failed ? "failed" : "not failed"}`, async () => {
    const { clock, spans, tracer } = aTracer();
    const began = clock.now();
    await tracer.requests(async (exchange) => {
      await clock.advance(30);
      exchange.respond(code, {}, "answer");
    })(anExchange({ "user-agent": "test" }));
    assert.equal(spans.length, 1);
    assert.deepEqual([spans[0]?.failed, spans[0]?.start, spans[0]?.end], [failed, began, began + 30]);
    assert.partialDeepStrictEqual(spans[0]?.attributes, {
      "http.target": "/api?limit=1",
      "http.status_code": code,
      "http.wrote_bytes": 6,
      "http.user_agent": "test",
      "http.flavor": "2",
    });
  });
}

for (const [httpVersion, flavor] of [
  ["1.1", "1.1"],
  ["2.0", "2"],
] as const) {
  test(`a request over HTTP/${httpVersion} has the flavour ${flavor}, and its host`, async () => {
    const { spans, tracer } = aTracer();
    const exchange = Object.assign(anExchange({ host: "api.example.com" }), { httpVersion });
    await tracer.requests(async (given) => given.respond(200, {}, ""))(exchange);
    assert.deepEqual(
      ["http.flavor", "http.host", "http.user_agent"].map((name) => spans[0]?.attributes[name]),
      [flavor, "api.example.com", undefined],
    );
  });
}

test("a request whose handler fails has a failed span, and the failure is passed on", async () => {
  const { spans, tracer } = aTracer();
  const failing = tracer.requests(async () => {
    throw new Error("no handler");
  });
  await assert.rejects(async () => failing(anExchange()), /no handler/);
  assert.deepEqual(
    spans.map((span) => span.failed),
    [true],
  );
});

test("the client's trace is linked, a malformed one is not, and it decides nothing about sampling", async () => {
  const [traceId, spanId] = ["0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"];
  for (const { sent, link } of [
    { sent: `00-${traceId}-${spanId}-00`, link: { traceId, spanId, sampled: false } },
    { sent: "nonsense", link: undefined },
  ]) {
    const { spans, tracer } = aTracer();
    await tracer.requests(async (exchange) => exchange.respond(200, {}))(anExchange({ traceparent: sent }));
    assert.deepEqual(spans[0]?.link, link);
    assert.notEqual(spans[0]?.traceId, traceId);
  }
  const none = aTracer(0);
  await none.tracer.requests(async (exchange) => exchange.respond(200, {}))(
    anExchange({ traceparent: `00-${traceId}-${spanId}-01` }),
  );
  assert.deepEqual(none.spans, []);
});

test("a unary call of a request is a span of its own below the request's; its metrics are counted all the same", async () => {
  const { clock, spans, tracer, calls, counted } = aTracer();
  let parent: string | undefined;
  await tracer.requests(async (exchange) => {
    parent = currentSpan.getStore()?.spanId;
    const call = calls("/etcdserverpb.KV/Txn", "unary");
    await clock.advance(5);
    call.started();
    call.sent();
    await clock.advance(10);
    call.received();
    call.handled(14);
    const sent = parseTraceparent(call.traceparent);
    assert.deepEqual([sent?.spanId, sent?.sampled], [spans[0]?.spanId, true]);
    exchange.respond(200, {});
  })(anExchange());
  const [call, request] = spans;
  assert.deepEqual([call?.traceId, call?.parentId, request?.spanId], [request?.traceId, parent, parent]);
  assert.notEqual(call?.spanId, parent);
  assert.deepEqual(
    [call?.name, call?.kind, call?.failed, (call?.end ?? 0) - (call?.start ?? 0)],
    ["etcdserverpb.KV/Txn", "client", true, 10],
  );
  assert.equal(call?.attributes["rpc.grpc.status_code"], 14);
  assert.deepEqual(counted, ["/etcdserverpb.KV/Txn started", "sent", "received", "ended with 14"]);
});

test("a call outside of requests has a trace of its own; a stream, or a call that is not sampled, has no span but its context", () => {
  const own = aTracer();
  const call = own.calls("/etcdserverpb.KV/Range", "unary");
  call.started();
  call.handled(0);
  assert.deepEqual([own.spans.length, own.spans[0]?.parentId, own.spans[0]?.failed], [1, undefined, false]);
  const stream = own.calls("/etcdserverpb.Watch/Watch", "bidi_stream");
  stream.started();
  stream.handled(0);
  assert.deepEqual([own.spans.length, parseTraceparent(stream.traceparent)?.sampled], [1, true]);
  const none = aTracer(0);
  const unsampled = none.calls("/etcdserverpb.KV/Range", "unary");
  unsampled.started();
  unsampled.handled(0);
  assert.deepEqual([none.spans.length, parseTraceparent(unsampled.traceparent)?.sampled], [0, false]);
  assert.deepEqual(none.counted, ["/etcdserverpb.KV/Range started", "ended with 0"]);
});
