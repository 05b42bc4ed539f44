import assert from "node:assert/strict";
import { test } from "node:test";
import { resourceExpired } from "@coxswain/apimachinery/objects/errors/status-error";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { writeError } from "../handlers/response.ts";
import { LoopbackExchange } from "../loopback/exchange.ts";
import { newFilterChain } from "./chain.ts";
import type { Handler } from "./filter.ts";
import { Drain } from "./lifetime.ts";
import { newRequestMetrics } from "./metrics.ts";

const watched = ["WATCH", "", "v1", "pods", "", "cluster", "apiserver"];

/** A chain that allows everything. */
function aChain(handle: Handler, { goawayChance = 0 } = {}) {
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
  });
  const gauges = () => [metrics.longRunning, metrics.longRunningDeprecated].map((gauge) => gauge.labels(...watched).value);
  const [verb, ...rest] = watched as [string, ...string[]];
  return { serve, gauges, total: (code: number) => metrics.total.labels(verb, "", ...rest, String(code)).value, clock, registry };
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
