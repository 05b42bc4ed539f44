import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { LoopbackExchange } from "../loopback/exchange.ts";
import { parseRequestInfo } from "../request/request-info.ts";
import { ServerRequest } from "../request/server-request.ts";
import { logRequest } from "./request-log.ts";

for (const { method, path, verb, URI } of [
  { method: "GET", path: "/api/v1/pods?watch=1", verb: "WATCH", URI: "/api/v1/pods?watch=1" },
  { method: "POST", path: "/api/v1/namespaces", verb: "CREATE", URI: "/api/v1/namespaces" },
  { method: "POST", path: "/healthz", verb: "POST", URI: "/healthz" },
  { method: "GET", path: "/version?access_token=secret", verb: "GET", URI: /^\/version\?access_token=(?!.*secret)/ },
]) {
  test(`the log of ${method} ${path} at verbosity 3: ${verb}`, async () => {
    const clock = newFakeClock();
    const exchange = new LoopbackExchange({ method, path, headers: { "user-agent": "kubectl", "audit-id": "a1" } });
    const request = new ServerRequest(exchange, parseRequestInfo(method, path), clock.now(), false);
    await clock.advance(12);
    exchange.respond(201, {});
    const logged: unknown[] = [];
    const info = (...said: unknown[]): void => void logged.push(said);
    logRequest({ ...discardLogger, v: (level) => (level === 3 ? { info } : undefined) }, clock, request);
    const [[message, fields]] = logged as [[string, Record<string, unknown>]]; // cast: logged once
    const { URI: shown, ...rest } = fields;
    if (typeof URI === "string") assert.equal(shown, URI);
    else assert.match(String(shown), URI);
    const kept = { verb, latency: "12.000ms", userAgent: "kubectl", "audit-ID": "a1", srcIP: "127.0.0.1", resp: 201 };
    assert.deepEqual([message, rest], ["HTTP", kept]);
  });
}
