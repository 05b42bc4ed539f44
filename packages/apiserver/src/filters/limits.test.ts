import assert from "node:assert/strict";
import { test } from "node:test";
import { notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { newReadWriteLoad } from "../flow-control/read-write-load.ts";
import type { SampledShare } from "../flow-control/sampled-share.ts";
import { LoopbackExchange } from "../loopback/exchange.ts";
import { isLongRunning, parseRequestInfo } from "../request/request-info.ts";
import { ServerRequest } from "../request/server-request.ts";
import { compose } from "./chain.ts";
import type { Handler } from "./filter.ts";
import { Drain, drain, timeout } from "./lifetime.ts";
import { maxInFlight } from "./max-in-flight.ts";
import { newRequestMetrics } from "./metrics.ts";

function aRequest(method: string, path: string, stopping?: AbortSignal): { request: ServerRequest; exchange: LoopbackExchange } {
  const exchange = new LoopbackExchange({ method, path, headers: {} });
  const info = parseRequestInfo(method, path);
  return { exchange, request: new ServerRequest(exchange, info, 0, isLongRunning(info), stopping) };
}

const metrics = () => newRequestMetrics(newMetricsRegistry());
const counted = () => ({
  clock: newFakeClock(),
  metrics: metrics(),
  load: newReadWriteLoad(newMetricsRegistry(), newFakeClock()),
});
/** A handler that responds after `release`. */
function held(): { handler: Handler; release: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { handler: (request) => promise.then(() => request.exchange.respond(200, {})), release: resolve };
}

test("the request beyond the limit gets 429 with Retry-After, reads and writes counted apart", async () => {
  const { handler, release } = held();
  const chain = compose([maxInFlight({ maxReadOnly: 1, maxMutating: 1, ...counted() })], handler);
  const [first, second, write] = [
    aRequest("GET", "/api/v1/pods"),
    aRequest("GET", "/api/v1/pods"),
    aRequest("POST", "/api/v1/namespaces"),
  ];
  const running = [chain(first.request), chain(second.request), chain(write.request)];
  await settle();
  assert.equal(second.exchange.status, 429);
  assert.equal((await second.exchange.response).headers["retry-after"], "1");
  release();
  await Promise.all(running);
  assert.deepEqual([first.exchange.status, write.exchange.status], [200, 200]);
  const third = aRequest("GET", "/api/v1/pods");
  await chain(third.request);
  assert.equal(third.exchange.status, 200);
});

test("a request that gets no place again after its body has arrived is counted as dropped", async () => {
  const options = counted();
  const body = Promise.withResolvers<Buffer>();
  const other = held();
  const slow = aRequest("POST", "/api/v1/namespaces");
  const chain = compose([maxInFlight({ maxReadOnly: 1, maxMutating: 1, ...options })], async (request) => {
    if (request === slow.request) await request.receive?.(body.promise);
    else await other.handler(request);
  });
  const running = chain(slow.request);
  await options.clock.advance(50);
  const second = chain(aRequest("POST", "/api/v1/namespaces").request);
  body.resolve(Buffer.alloc(0));
  await assert.rejects(Promise.resolve(running), { code: 429 });
  assert.equal(options.metrics.droppedRequests.labels("mutating").value, 1);
  other.release();
  await second;
});

test("an answer that only waits for its reader leaves its place once: the limit stays what it is", async () => {
  const read = () => aRequest("GET", "/api/v1/pods");
  const again = held();
  const limited = compose([maxInFlight({ maxReadOnly: 1, maxMutating: 1, ...counted() })], (request) =>
    request === first.request ? Promise.resolve() : again.handler(request),
  );
  const [first, second, third] = [read(), read(), read()];
  const one = limited(first.request);
  first.exchange.onUnread?.();
  await one;
  const others = [limited(second.request), limited(third.request)];
  await settle();
  assert.equal(third.exchange.status, 429);
  again.release();
  await Promise.all(others);
});

test("an answer that only waits for its reader takes no place while its handler goes on", async () => {
  const { handler, release } = held();
  const chain = compose([maxInFlight({ maxReadOnly: 1, maxMutating: 1, ...counted() })], handler);
  const [first, second] = [aRequest("GET", "/api/v1/pods"), aRequest("GET", "/api/v1/pods")];
  const running = [chain(first.request)];
  await settle();
  first.exchange.onUnread?.();
  running.push(chain(second.request));
  release();
  await Promise.all(running);
  assert.equal(second.exchange.status, 200);
});

test("without a limit nobody is refused", async () => {
  const { handler, release } = held();
  const chain = compose([maxInFlight({ maxReadOnly: 0, maxMutating: 0, ...counted() })], handler);
  const all = Array.from({ length: 3 }, () => aRequest("GET", "/api/v1/pods"));
  const running = all.map(({ request }) => chain(request));
  release();
  await Promise.all(running);
  assert.deepEqual(
    all.map(({ exchange }) => exchange.status),
    [200, 200, 200],
  );
});

test("who runs and who is dropped is counted by reads and writes, also when a handler fails", async () => {
  const options = counted();
  const shares: string[] = [];
  const load: typeof options.load = (phase, kind) => {
    const share = {
      setLimit: (limit: number) => shares.push(`${phase} ${kind} of ${limit}`),
      add: (by: number) => shares.push(`${kind} ${by}`),
    };
    return share as unknown as SampledShare; // cast: no other part is used
  };
  const failure = Promise.withResolvers<void>();
  const chain = compose([maxInFlight({ maxReadOnly: 1, maxMutating: 0, ...options, load })], () => failure.promise);
  const gauges = () => ["readOnly", "mutating"].map((kind) => options.metrics.inFlight.labels(kind).value);
  const running = Promise.resolve(chain(aRequest("GET", "/api/v1/pods").request));
  await chain(aRequest("GET", "/api/v1/pods").request);
  assert.deepEqual(gauges(), [1, 0]);
  const dropped = ["readOnly", "mutating"].map((kind) => options.metrics.droppedRequests.labels(kind).value);
  assert.deepEqual(dropped, [1, 0]);
  assert.equal(options.metrics.terminations.labels("LIST", "", "v1", "", "", "cluster", "apiserver", "429").value, 1);
  failure.reject(new Error("broken"));
  await assert.rejects(running, /broken/);
  assert.deepEqual(gauges(), [0, 0]);
  assert.deepEqual(shares, ["executing readOnly of 1", "readOnly 1", "readOnly -1"]);
});

test("watches are not counted, and system:masters always get an answer", async () => {
  const { handler, release } = held();
  const chain = compose([maxInFlight({ maxReadOnly: 1, maxMutating: 1, ...counted() })], handler);
  const [watch, read, admin] = [
    aRequest("GET", "/api/v1/pods?watch=1"),
    aRequest("GET", "/api/v1/pods"),
    aRequest("GET", "/api/v1/pods"),
  ];
  admin.request.user = { name: "root", groups: ["system:masters"] };
  const running = [chain(watch.request), chain(read.request), chain(admin.request)];
  release();
  await Promise.all(running);
  assert.deepEqual(
    [watch, read, admin].map(({ exchange }) => exchange.status),
    [200, 200, 200],
  );
});

test("a handler that misses the deadline sees its signal aborted, and the client gets 504", async () => {
  const clock = newFakeClock(0);
  const errors: unknown[] = [];
  const writeError = (request: ServerRequest, err: unknown): void => {
    errors.push(err);
    request.exchange.respond((err as { code: number }).code, {});
  };
  const { promise, resolve } = Promise.withResolvers<void>();
  let reason: unknown;
  const counted = metrics();
  const chain = compose([timeout({ requestTimeoutMs: 60_000, clock, writeError, metrics: counted })], (request) => {
    request.signal.addEventListener("abort", () => {
      reason = request.signal.reason;
    });
    return promise;
  });
  const { request, exchange } = aRequest("GET", "/api/v1/pods?timeout=5s");
  const running = chain(request);
  assert.equal(request.deadlineMs, 5000);
  await clock.advance(4999);
  assert.equal(reason, undefined);
  await clock.advance(1);
  assert.match(String(reason), /request did not complete within the allotted timeout/);
  await clock.advance(100);
  assert.equal(exchange.status, 504);
  const late = counted.postTimeout.labels("timeout-handler", "ok");
  assert.equal(counted.terminations.labels("LIST", "", "v1", "", "", "cluster", "apiserver", "504").value, 1);
  assert.equal(late.value, 0);
  resolve();
  await running;
  assert.equal(errors.length, 1);
  assert.equal(late.value, 1, "the handler that came too late is counted");
});

test("the deadline of a request counts from its receipt", async () => {
  const clock = newFakeClock(10_000);
  const options = { requestTimeoutMs: 60_000, clock, writeError: () => {}, metrics: metrics() };
  const { request } = aRequest("GET", "/api/v1/pods?timeout=5s");
  await compose([timeout(options)], () => {})(request);
  assert.equal(request.deadlineMs, 5_000);
});

test("no timer of a deadline is left behind an answer, in time or late, nor behind a failure", async () => {
  for (const { waitMs, fails } of [
    { waitMs: 0, fails: false },
    { waitMs: 0, fails: true },
    { waitMs: 60_050, fails: false },
    { waitMs: 61_000, fails: true },
  ]) {
    const clock = newFakeClock(0);
    const over = Promise.withResolvers<void>();
    const writeError = (request: ServerRequest): void => request.exchange.respond(504, {});
    const chain = compose([timeout({ requestTimeoutMs: 60_000, clock, writeError, metrics: metrics() })], () => over.promise);
    const running = Promise.resolve(chain(aRequest("GET", "/api/v1/pods").request));
    await clock.advance(waitMs);
    assert.equal(clock.waiting, 1);
    if (fails) over.reject(new Error("broken"));
    else over.resolve();
    await running.catch(() => {});
    assert.equal(clock.waiting, 0, `after ${waitMs} ms`);
  }
});

test("the server's latency excludes the time of webhooks: the sum of mutating ones, the longest of validating ones", () => {
  const { request } = aRequest("POST", "/api/v1/namespaces/default/pods");
  for (const ms of [10, 20]) request.webhookTook("admit", ms);
  for (const ms of [5, 40, 30]) request.webhookTook("validating", ms);
  assert.equal(request.webhookMs, 70);
});

for (const { how, settle: end, rest, outer } of [
  { how: "with a result", settle: "resolve", rest: "ok", outer: "ok" },
  { how: "with an error", settle: "refuse", rest: "error", outer: "ok" },
  { how: "by breaking", settle: "break", rest: "panic", outer: "panic" },
  { how: "after five minutes", settle: "wait", rest: "pending", outer: "ok" },
] as const) {
  test(`a handler that ends ${how} after its request was answered is counted as ${rest}`, async () => {
    const clock = newFakeClock(0);
    const counted = metrics();
    const work = Promise.withResolvers<void>();
    const writeError = (request: ServerRequest): void => request.exchange.respond(504, {});
    const chain = compose([timeout({ requestTimeoutMs: 1000, clock, writeError, metrics: counted })], () => work.promise);
    const running = Promise.resolve(chain(aRequest("GET", "/api/v1/pods").request)).catch(() => {});
    await clock.advance(1100);
    if (end === "refuse") work.reject(notFound({ group: "", resource: "pods" }, "a"));
    else if (end === "break") work.reject(new TypeError("broken"));
    else {
      if (end === "wait") await clock.advance(300_000);
      work.resolve();
    }
    await running;
    const statuses = ["ok", "error", "panic", "pending"];
    const values = (source: string) => statuses.filter((status) => counted.postTimeout.labels(source, status).value === 1);
    assert.deepEqual([values("rest-handler"), values("timeout-handler")], [[rest], [outer]]);
  });
}

for (const [path, verb, scope] of [
  ["/api/v1/namespaces/web/pods", "LIST", "namespace"],
  ["/api/v1/namespaces/web/pods/a", "GET", "resource"],
  ["/api/v1/nodes", "LIST", "cluster"],
  ["/api/v1/nodes/a", "GET", "resource"],
] as const)
  test(`a ${verb} of ${path} that timed out in the middle of its answer is broken off and counted as aborted`, async () => {
    const clock = newFakeClock(0);
    const registry = newMetricsRegistry();
    const work = Promise.withResolvers<void>();
    const writeError = (): void => assert.fail("it has begun");
    const options = { requestTimeoutMs: 1000, clock, writeError, metrics: newRequestMetrics(registry) };
    const chain = compose([timeout(options)], (request) => {
      request.exchange.stream(200, {}).write("half");
      return work.promise;
    });
    const { request, exchange } = aRequest("GET", path);
    const broken = assert.rejects(async () => Array.fromAsync((await exchange.response).body), /aborted/);
    const running = chain(request);
    await clock.advance(1100);
    await broken;
    work.resolve();
    await running;
    const page = await registry.render();
    const aborted = `verb="${verb}",group="",version="v1",resource="",subresource="",scope="${scope}"`;
    assert.ok(page.includes(`\napiserver_request_aborts_total{${aborted}} 1\n`), page);
    const ended = `\napiserver_request_terminations_total{${aborted},component="apiserver",code="504"} 1\n`;
    assert.ok(page.includes(ended), page);
    assert.ok(page.includes('\napiserver_request_post_timeout_total{source="rest-handler",status="ok"} 1\n'), page);
  });

test("a watch has no deadline", async () => {
  const options = { requestTimeoutMs: 1, clock: newFakeClock(0), writeError: () => {}, metrics: metrics() };
  const chain = compose([timeout(options)], () => {});
  const { request } = aRequest("GET", "/api/v1/pods?watch=1&timeout=5s");
  await chain(request);
  assert.equal(request.deadlineMs, undefined);
});

test("watches end when the server drains, once short requests are done", async () => {
  const clock = newFakeClock(0);
  const state = new Drain();
  const { handler, release } = held();
  const chain = compose([drain(state)], handler);
  const short = aRequest("GET", "/api/v1/pods", state.signal);
  const watch = aRequest("GET", "/api/v1/pods?watch=1", state.signal);
  const running = [chain(short.request), chain(watch.request)];
  const ended = state.end(60_000, clock);
  await settle();
  assert.equal(watch.request.signal.aborted, false);
  release();
  await Promise.all(running);
  await clock.advance(10);
  await ended;
  assert.equal(watch.request.signal.aborted, true);
  assert.equal(short.request.signal.aborted, false);
});

test("a short request that fails holds up the end of the server no longer than one that is answered", async () => {
  const state = new Drain();
  let idle = 0;
  state.onIdle = () => idle++;
  const chain = compose([drain(state)], async () => {
    throw new Error("no");
  });
  await assert.rejects(async () => chain(aRequest("GET", "/api/v1/pods").request), /no/);
  assert.deepEqual([state.idle, idle], [true, 1]);
});

test("a draining server with the flag sends clients elsewhere, but answers health", async () => {
  const state = new Drain();
  state.sendRetryAfter = true;
  const chain = compose([drain(state)], (request) => request.exchange.respond(200, {}));
  const paths = ["/api/v1/pods", "/readyz/etcd", "/livez", "/healthz?verbose", "/metrics", "/version"];
  const away: string[] = [];
  const statuses: number[] = [];
  for (const path of paths) {
    const { request, exchange } = aRequest("GET", path);
    Object.defineProperty(exchange, "goAway", { value: () => away.push(path) });
    await chain(request);
    statuses.push(exchange.status);
    if (exchange.status === 429) assert.equal((await exchange.response).headers["retry-after"], "5");
  }
  assert.deepEqual(statuses, [429, 200, 200, 200, 200, 429]);
  assert.deepEqual(away, ["/api/v1/pods", "/version"]);
});

test("a server is idle when the last of its short requests has ended, not before", async () => {
  const state = new Drain();
  let idle = 0;
  state.onIdle = () => idle++;
  const [one, other] = [held(), held()];
  const chain = compose([drain(state)], (request) => (request.info.verb === "list" ? one : other).handler(request));
  const running = [chain(aRequest("GET", "/api/v1/pods").request), chain(aRequest("POST", "/api/v1/namespaces").request)];
  one.release();
  await running[0];
  assert.deepEqual([state.idle, idle], [false, 0]);
  other.release();
  await running[1];
  assert.deepEqual([state.idle, idle], [true, 1]);
});

test("warnings are sent once each and quoted, but for those with control characters", async () => {
  const { request, exchange } = aRequest("GET", "/api/v1/pods");
  request.warn('say "hello" there');
  request.warn('say "hello" there');
  request.warn("two\nlines");
  exchange.respond(200, {});
  assert.equal((await exchange.response).headers["warning"], '299 - "say \\"hello\\" there"');
});

test("a watch does not hold up the end of the server, whose signal it waits for", async () => {
  const clock = newFakeClock(0);
  const state = new Drain();
  const chain = compose(
    [drain(state)],
    ({ signal }) =>
      new Promise<void>((resolve) => {
        signal.addEventListener("abort", () => resolve());
      }),
  );
  const watch = aRequest("GET", "/api/v1/pods?watch=1", state.signal);
  const running = chain(watch.request);
  assert.equal(state.idle, true);
  await state.end(60_000, clock);
  await running;
  assert.equal(clock.monotonic(), 0);
});

test("a server that drains waits for short requests no longer than its grace period", async () => {
  const clock = newFakeClock(0);
  const state = new Drain();
  const { handler, release } = held();
  const chain = compose([drain(state)], handler);
  const running = chain(aRequest("GET", "/api/v1/pods").request);
  let ended = false;
  const ending = state.end(1_000, clock).then(() => {
    ended = true;
  });
  await clock.advance(990);
  assert.deepEqual([ended, state.signal.aborted], [false, false]);
  await clock.advance(10);
  await ending;
  assert.equal(state.signal.aborted, true);
  release();
  await running;
});
