import assert from "node:assert/strict";
import { test } from "node:test";
import { notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newAuditMetrics } from "../audit/backend.ts";
import { newPolicyEvaluator, type PolicyRule } from "../audit/policy.ts";
import { newObjectRecorder } from "../audit/recorded-object.ts";
import { LoopbackExchange } from "../loopback/exchange.ts";
import { isLongRunning, parseRequestInfo } from "../request/request-info.ts";
import { ServerRequest } from "../request/server-request.ts";
import { audit } from "./audit.ts";
import type { Handler } from "./filter.ts";

// biome-ignore lint/suspicious/noExplicitAny: events hold objects of every kind.
type Event = any;

/** Runs one request through the filter. @returns the audit events, in order */
async function eventsOf(path: string, handler: Handler, rule: Partial<PolicyRule> = {}): Promise<Event[]> {
  const events: Event[] = [];
  const auditor = {
    evaluate: newPolicyEvaluator({ rules: [{ level: "Metadata", ...rule }] }),
    backend: {
      process(records: readonly { item(version: "audit.k8s.io/v1"): Buffer }[]) {
        events.push(...records.map((record) => JSON.parse(String(record.item("audit.k8s.io/v1")))));
        return true;
      },
      stop: async () => {},
    },
    objects: newObjectRecorder(),
    metrics: newAuditMetrics(newMetricsRegistry()),
  };
  const clock = newFakeClock();
  const exchange = new LoopbackExchange({ method: "GET", path, headers: {} });
  const info = parseRequestInfo("GET", path);
  const request = new ServerRequest(exchange, info, clock.now(), isLongRunning(info));
  try {
    await audit(auditor, clock, discardLogger)(request, handler);
  } catch {
    // Stands for the chain's panic recovery, which responds on the exchange that the filter installed.
    if (!request.exchange.headersSent) request.exchange.respond(500, {});
  }
  return events;
}

const stagesOf = (events: Event[]): string[] => events.map(({ stage }) => stage);

test("a handler that throws leaves an event of the stage Panic instead of ResponseComplete", async () => {
  const events = await eventsOf("/api/v1/pods", () => {
    throw new TypeError("undefined is no pod");
  });
  assert.deepEqual(stagesOf(events), ["RequestReceived", "Panic"]);
  assert.deepEqual(events[1].responseStatus, {
    metadata: {},
    status: "Failure",
    message: "APIServer panic'd: undefined is no pod",
    reason: "InternalError",
    code: 500,
  });
});

test("a refusal that is thrown is no panic", async () => {
  const events = await eventsOf("/api/v1/pods", () => {
    throw notFound({ group: "", resource: "pods" } as never, "x");
  });
  assert.deepEqual(stagesOf(events), ["RequestReceived", "ResponseComplete"]);
});

test("a watch that breaks after it began says so", async () => {
  const events = await eventsOf("/api/v1/pods?watch=1", (request) => {
    request.exchange.stream(200, {});
    throw new RangeError("too far");
  });
  assert.deepEqual(stagesOf(events), ["RequestReceived", "ResponseStarted", "Panic"]);
});

test("stages that the policy leaves out are left out, panics too", async () => {
  const broken: Handler = () => {
    throw new TypeError("no");
  };
  assert.deepEqual(stagesOf(await eventsOf("/api/v1/pods", broken, { omitStages: ["Panic"] })), ["RequestReceived"]);
  assert.deepEqual(await eventsOf("/api/v1/pods", broken, { level: "None" }), []);
});
