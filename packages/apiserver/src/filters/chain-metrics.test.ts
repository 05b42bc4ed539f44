import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { internalError, resourceExpired } from "@coxswain/apimachinery/objects/errors/status-error";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { writeError } from "../handlers/response.ts";
import { LoopbackExchange } from "../loopback/exchange.ts";
import { parseRequestInfo } from "../request/request-info.ts";
import { ServerRequest } from "../request/server-request.ts";
import { compose, newFilterChain } from "./chain.ts";
import type { Filter, Handler } from "./filter.ts";
import { Drain } from "./lifetime.ts";
import { endOfFilter, newRequestMetrics, startOfFilter } from "./metrics.ts";

const watched = ["WATCH", "", "v1", "pods", "", "cluster", "apiserver"];

type ChainOptions = Parameters<typeof newFilterChain<object>>[0];

/** A chain that allows everything. */
function aChain(handle: Handler, { goawayChance = 0, ...more }: Partial<ChainOptions> = {}) {
  const registry = newMetricsRegistry();
  const metrics = newRequestMetrics(registry);
  const clock = newFakeClock();
  const serve = newFilterChain({
    ...{ handle, handleOther: handle, writeError, metrics, clock, log: discardLogger, drain: new Drain() },
    authenticate: async () => ({ user: { name: "joe", groups: [] } }),
    authorize: () => ({ decision: "allow" }),
    limitLoad: (request, next) => next(request),
    findServed: () => ({}),
    ...{
      apiAudiences: [],
      corsAllowedOrigins: [],
      hstsDirectives: [],
      auditor: undefined,
      goawayChance,
      requestTimeoutMs: 1000,
    },
    ...more,
  });
  const gauges = () => [metrics.longRunning, metrics.longRunningDeprecated].map((gauge) => gauge.labels(...watched).value);
  const [verb, ...rest] = watched as [string, ...string[]];
  const total = (code: number) => metrics.total.labels(verb, "", ...rest, String(code)).value;
  return { serve, gauges, total, clock, registry, metrics };
}

for (const { name, end, code } of [
  { name: "ends", end: () => {}, code: 200 },
  {
    name: "is refused",
    end() {
      throw resourceExpired("too old resource version");
    },
    code: 410,
  },
  {
    name: "fails",
    end() {
      throw new Error("no memory");
    },
    code: 500,
  },
]) {
  test(`a watch that ${name} counts as running until then, and once with ${code}`, async () => {
    const running: number[][] = [];
    const { serve, gauges, total } = aChain(() => {
      running.push(gauges());
      end();
    });
    const exchange = new LoopbackExchange({ method: "GET", path: "/api/v1/pods?watch=1", headers: {} });
    await serve(exchange);
    assert.deepEqual([running, gauges(), total(code)], [[[1, 1]], [0, 0], 1]);
  });
}

test("the SLO duration of a request excludes the time of its webhooks, its duration does not", async () => {
  const { serve, clock, registry } = aChain(async (request) => {
    await clock.advance(3_000);
    request.webhookTook("admit", 1_000);
    request.webhookTook("validating", 500);
    request.exchange.respond(200, {});
  });
  await serve(new LoopbackExchange({ method: "GET", path: "/api/v1/pods", headers: {} }));
  const page = await registry.render();
  const sums = ["duration", "slo_duration"].map(
    (name) => new RegExp(`^apiserver_request_${name}_seconds_sum\\{.*\\} (.*)$`, "m").exec(page)?.[1],
  );
  assert.deepEqual(sums, ["3", "1.5"]);
});

for (const [method, path, verb] of [
  ["POST", "pods/a/exec", "CONNECT"],
  ["POST", "pods/a/attach", "CONNECT"],
  ["GET", "pods/a/portforward", "CONNECT"],
  ["GET", "services/a/proxy", "CONNECT"],
  ["GET", "pods/a/log", "GET"],
  ["POST", "pods/a/eviction", "POST"],
  ["PUT", "pods/a/status", "PUT"],
] as const) {
  test(`${method} of ${path} is counted as ${verb}`, async () => {
    const { serve, registry } = aChain(({ exchange }) => exchange.respond(200, {}));
    await serve(new LoopbackExchange({ method, path: `/api/v1/namespaces/web/${path}`, headers: {} }));
    assert.match(await registry.render(), new RegExp(`^apiserver_request_total\\{verb="${verb}",.* 1$`, "m"));
  });
}

for (const [path, code] of [
  ["/api/v1/pods/%zz", 400],
  ["/api/v1/watch", 500],
] as const) {
  test(`${path}, whose resource cannot be determined, is answered with ${code}`, async () => {
    const { serve } = aChain(({ exchange }) => exchange.respond(200, {}));
    const exchange = new LoopbackExchange({ method: "GET", path, headers: {} });
    await serve(exchange);
    assert.equal(exchange.status, code);
  });
}

for (const { httpVersion, goawayChance, away } of [
  { httpVersion: "2.0", goawayChance: 1, away: 1 },
  { httpVersion: "1.1", goawayChance: 1, away: 0 },
  { httpVersion: "2.0", goawayChance: 0, away: 0 },
]) {
  test(`a client of HTTP/${httpVersion} is ${away ? "" : "not "}sent elsewhere when the chance of it is ${goawayChance}`, async () => {
    const { serve } = aChain(({ exchange }) => exchange.respond(200, {}), { goawayChance });
    const exchange = new LoopbackExchange({ method: "GET", path: "/api/v1/pods", headers: {} });
    let sentAway = 0;
    Object.defineProperties(exchange, { httpVersion: { value: httpVersion }, goAway: { value: () => sentAway++ } });
    await serve(exchange);
    assert.deepEqual([sentAway, exchange.status], [away, 200]);
  });
}

for (const { query, dryRun } of [
  { query: "", dryRun: "" },
  { query: "?dryRun=All", dryRun: "All" },
  { query: "?dryRun=All&dryRun=All", dryRun: "All" },
  { query: "?dryRun=All&dryRun=Some", dryRun: "invalid" },
  { query: "?dryRun=", dryRun: "invalid" },
]) {
  test(`a write with ${query || "no query"} is counted with the dry run ${JSON.stringify(dryRun)}`, async () => {
    const { serve, registry } = aChain(({ exchange }) => exchange.respond(201, {}));
    await serve(new LoopbackExchange({ method: "POST", path: `/api/v1/namespaces/web/pods${query}`, headers: {} }));
    const counted = new RegExp(`^apiserver_request_total\\{.*dry_run="${dryRun}".*code="201"\\} 1$`, "m");
    assert.match(await registry.render(), counted);
  });
}

/** A log that keeps the errors, and what a request with this handler leaves in it. */
async function failing(
  handle: Handler,
  more: Partial<ChainOptions> = {},
  path = "/api/v1/namespaces/web/pods?access_token=secret",
) {
  const errors: { message: string; err: unknown; fields: unknown }[] = [];
  const log = {
    ...discardLogger,
    error: (message: string, err?: unknown, fields?: unknown) => void errors.push({ message, err, fields }),
  };
  const { serve } = aChain(handle, { log, ...more });
  const client = new AbortController();
  const exchange = new LoopbackExchange({ method: "GET", path, headers: { "audit-id": "a1" }, signal: client.signal });
  const answer = exchange.response.then(
    ({ body }) => Array.fromAsync(body),
    () => {},
  );
  const broken = answer.then(
    () => false,
    () => true,
  );
  await serve(exchange);
  return { errors, exchange, broken };
}

test("an error that is no Status is logged with its request, without its secrets, and answered with 500", async () => {
  const fault = new Error("no memory");
  const { errors, exchange } = await failing(() => {
    throw fault;
  });
  const [{ message, err, fields }] = errors as [(typeof errors)[0]]; // cast: checked by what follows
  assert.deepEqual([errors.length, message, err, exchange.status], [1, "Request failed", fault, 500]);
  assert.partialDeepStrictEqual(fields, { verb: "list", "audit-ID": "a1" });
  assert.doesNotMatch(JSON.stringify(fields), /secret/);
});

test("a Status is answered and not logged, whatever its code", async () => {
  for (const thrown of [resourceExpired("too old"), internalError(new Error("away"))]) {
    const { errors, exchange } = await failing(() => {
      throw thrown;
    });
    assert.deepEqual([errors, exchange.status], [[], thrown.code]);
  }
});

test("a request whose client has gone is neither answered nor logged", async () => {
  const { errors, exchange } = await failing(({ exchange: own }) => {
    own.destroy();
    throw new Error("cannot write");
  });
  assert.deepEqual([errors, exchange.status], [[], 0]);
});

test("an answer that has begun is broken off when its handler fails", async () => {
  const { errors, broken } = await failing(({ exchange }) => {
    exchange.stream(200, {}).write("half");
    throw new Error("no memory");
  });
  assert.deepEqual([errors.length, await broken], [1, true]);
});

test("an error that cannot be written breaks its request off, and is logged without its secrets", async () => {
  const second = new Error("no room");
  const { errors, exchange } = await failing(
    () => {
      throw resourceExpired("too old");
    },
    {
      writeError() {
        throw second;
      },
    },
  );
  assert.deepEqual(
    [exchange.isGone, errors.length, errors[0]?.message, errors[0]?.err],
    [true, 1, "Cannot write an error", second],
  );
  assert.doesNotMatch(JSON.stringify(errors[0]?.fields), /secret/);
});

test("requests are counted by verb, scope, dry run and code, with the sizes of reads alone", async () => {
  const { serve, registry } = aChain(({ exchange }) => exchange.respond(200, {}, "12345"));
  const ask = (method: string, path: string, headers = {}) => serve(new LoopbackExchange({ method, path, headers }));
  const pods = "/api/v1/namespaces/web/pods";
  await ask("GET", "/api/v1/pods");
  await ask("GET", pods);
  await ask("GET", `${pods}/a`);
  await ask("GET", `${pods}/a/exec`);
  await ask("PATCH", `${pods}/a`, { "content-type": "application/apply-patch+yaml" });
  await ask("PATCH", `${pods}/a`, { "content-type": "application/merge-patch+json" });
  await ask("PATCH", `${pods}/a?dryRun=All`, { "content-type": "application/merge-patch+json" });
  await ask("DELETE", pods);
  await ask("OPTIONS", pods);
  const page = await registry.render();
  const labels = [
    ...page.matchAll(/^apiserver_request_total\{verb="(\w*)",dry_run="(\w*)",.*subresource="(\w*)",scope="(\w+)".*\} 1$/gm),
  ];
  assert.deepEqual(labels.map((match) => match.slice(1).join(" ")).toSorted(), [
    "APPLY   resource",
    "CONNECT  exec resource",
    "DELETECOLLECTION   namespace",
    "GET   resource",
    "LIST   cluster",
    "LIST   namespace",
    "PATCH   resource",
    "PATCH All  resource",
  ]);
  const sizes = [...page.matchAll(/^apiserver_response_sizes_sum\{verb="(\w+)".*scope="(\w+)".*\} (\d+)$/gm)];
  const read = sizes.filter(([, , , sum]) => sum !== "0").map((match) => match.slice(1).join(" "));
  assert.deepEqual(read.toSorted(), ["CONNECT resource 5", "GET resource 5", "LIST cluster 5", "LIST namespace 5"]);
});

for (const { hstsDirectives, want } of [
  { hstsDirectives: [], want: undefined },
  { hstsDirectives: ["max-age=31536000", "preload"], want: "max-age=31536000; preload" },
]) {
  test(`answers with the directives [${hstsDirectives}] have the header ${want}`, async () => {
    const { serve } = aChain(({ exchange }) => exchange.respond(200, {}), { hstsDirectives });
    const exchange = new LoopbackExchange({ method: "GET", path: "/version", headers: {} });
    await serve(exchange);
    assert.equal((await exchange.response).headers["strict-transport-security"], want);
  });
}

test("a watch that has ended leaves nothing at the signal of the server's end, which outlives it", async () => {
  const drain = new Drain();
  const aborted: boolean[] = [];
  const during: number[] = [];
  const listeners = () => getEventListeners(drain.signal, "abort").length;
  const { serve } = aChain(
    ({ signal }) => {
      aborted.push(signal.aborted);
      during.push(listeners());
    },
    { drain },
  );
  const before = listeners();
  for (let i = 0; i < 3; i++) await serve(new LoopbackExchange({ method: "GET", path: "/api/v1/pods?watch=1", headers: {} }));
  assert.deepEqual([during, listeners() - before, aborted], [Array(3).fill(before + 1), 0, [false, false, false]]);
});

test("each filter is measured from the end of the one before it", async (t) => {
  let now = 1000;
  t.mock.method(performance, "now", () => now);
  const after =
    (ms: number): Filter =>
    (request, next) => {
      now += ms;
      return next(request);
    };
  const registry = newMetricsRegistry();
  const counted = newRequestMetrics(registry);
  const chain = compose(
    [startOfFilter, after(1000), endOfFilter("authentication", counted), after(3000), endOfFilter("authorization", counted)],
    () => {},
  );
  const exchange = new LoopbackExchange({ method: "GET", path: "/", headers: {} });
  await chain(new ServerRequest(exchange, parseRequestInfo("GET", "/"), 0, false));
  const page = await registry.render();
  const sums = ["authentication", "authorization"].map(
    (filter) => new RegExp(`^apiserver_request_filter_duration_seconds_sum\\{filter="${filter}"\\} (.*)$`, "m").exec(page)?.[1],
  );
  assert.deepEqual(sums, ["1", "3"]);
});
