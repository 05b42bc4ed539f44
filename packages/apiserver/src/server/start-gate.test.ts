import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { LoopbackExchange } from "../loopback/exchange.ts";
import { Edge } from "./edge.ts";
import { whileStarting } from "./start-gate.ts";

for (const { method = "GET", path, anonymousAuth = true, code, leaves } of [
  { path: "/livez", code: 200, leaves: false },
  { path: "/readyz/ping?verbose", code: 200, leaves: false },
  { path: "/version?pretty", code: 200, leaves: false },
  { path: "/version", anonymousAuth: false, code: 503, leaves: true },
  { method: "POST", path: "/version", code: 503, leaves: true },
  { path: "/version/x", code: 503, leaves: true },
  { path: "/livezz", code: 503, leaves: true },
  { path: "/metrics", code: 503, leaves: true },
  { path: "/api/v1/nodes", code: 503, leaves: true },
]) {
  const who = anonymousAuth ? "" : ", without anonymous requests,";
  test(`${method} ${path} of a server that starts${who} is answered with ${code} and ${leaves ? "ends" : "keeps"} the connection`, async () => {
    const options = { log: discardLogger, clock: newFakeClock(), profiling: undefined, livezGraceMs: 0, documents: undefined };
    const edge = new Edge({ metrics: newMetricsRegistry({}), ...options });
    const exchange = new LoopbackExchange({ method, path, headers: {} });
    let hasLeft = false;
    exchange.goAway = () => {
      hasLeft = true;
    };
    await whileStarting(edge, { anonymousAuth })(exchange);
    const { status, headers } = await exchange.response;
    assert.deepEqual([status, hasLeft, headers["retry-after"]], [code, leaves, leaves ? "1" : undefined]);
  });
}
