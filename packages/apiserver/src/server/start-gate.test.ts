import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { settle } from "@coxswain/apimachinery/testing/wait-for";
import { LoopbackExchange } from "../loopback/exchange.ts";
import { Edge } from "./edge.ts";
import { untilServable, whileStarting } from "./start-gate.ts";

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

/** A start with two unfinished steps. */
function aStart(failingMs = () => 0) {
  const clock = newFakeClock();
  const missing = new Set(["roles", "informers"]);
  const last = Promise.withResolvers<void>();
  const errors: unknown[] = [];
  const stop = new AbortController();
  let isServable = false;
  const servable = untilServable({
    missing: () => [...missing],
    failingMs,
    lastStep: last.promise,
    clock,
    log: { ...discardLogger, error: (_message, _err, values) => void errors.push(values) },
    signal: stop.signal,
  });
  void servable.then(
    () => {
      isServable = true;
    },
    () => {},
  );
  return { clock, missing, last, errors, stop, servable, isServable: () => isServable };
}

test("requests are served as soon as the last step has ended, without a poll", async () => {
  const { last, missing, isServable } = aStart();
  missing.clear();
  last.resolve();
  await settle();
  assert.equal(isServable(), true);
});

for (const { name, end } of [
  { name: "has ended", end: ({ resolve }: { resolve(): void }) => resolve() },
  { name: "has failed", end: ({ reject }: { reject(err: Error): void }) => reject(new Error("stopped")) },
])
  test(`when others are unfinished after the last step ${name}, requests are served at the next poll after them`, async () => {
    const { last, missing, clock, isServable } = aStart();
    end(last);
    await clock.advance(1000);
    assert.equal(isServable(), false);
    missing.clear();
    await clock.advance(20);
    assert.equal(isServable(), true);
  });

test("a start that has failed for a minute serves requests, and names what is missing in the log", async () => {
  let ms = 59_999;
  const { clock, errors, isServable } = aStart(() => ms);
  await clock.advance(1000);
  assert.equal(isServable(), false);
  ms = 60_000;
  await clock.advance(20);
  assert.equal(isServable(), true);
  assert.deepEqual(errors, [{ missing: "roles,informers" }]);
});

test("a server that stops while it starts serves nothing", async () => {
  const { stop, servable } = aStart();
  stop.abort(new Error("stopped"));
  await assert.rejects(servable, /stopped/);
});
