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
function aChain(handle: Handler) {
  const metrics = newRequestMetrics(newMetricsRegistry());
  const serve = newFilterChain({
    ...{ handle, handleOther: handle, writeError, metrics, clock: newFakeClock(), log: discardLogger, drain: new Drain() },
    authenticate: async () => ({ user: { name: "joe", groups: [] } }),
    authorize: () => ({ decision: "allow" }),
    limitLoad: (request, next) => next(request),
    findServed: () => ({}),
    ...{
      apiAudiences: [],
      corsAllowedOrigins: [],
      hstsDirectives: [],
      auditor: undefined,
      goawayChance: 0,
      requestTimeoutMs: 1000,
    },
  });
  const gauges = () => [metrics.longRunning, metrics.longRunningDeprecated].map((gauge) => gauge.labels(...watched).value);
  const [verb, ...rest] = watched as [string, ...string[]];
  return { serve, gauges, total: (code: number) => metrics.total.labels(verb, "", ...rest, String(code)).value };
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
