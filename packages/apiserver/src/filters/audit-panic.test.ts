import assert from "node:assert/strict";
import { test } from "node:test";
import { notFound } from "@coxswain/apimachinery/objects/errors/status-error";
import { type FakeClock, newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newAuditMetrics } from "../audit/backend.ts";
import { newPolicyEvaluator, type PolicyRule } from "../audit/policy.ts";
import { newObjectRecorder, type ObjectRecorder } from "../audit/recorded-object.ts";
import { LoopbackExchange } from "../loopback/exchange.ts";
import { isLongRunning, parseRequestInfo } from "../request/request-info.ts";
import { ServerRequest } from "../request/server-request.ts";
import { audit, auditFailedAuthentication } from "./audit.ts";
import { AuditedExchange } from "./audited-exchange.ts";
import type { Handler } from "./filter.ts";

// biome-ignore lint/suspicious/noExplicitAny: events hold objects of every kind.
type Event = any;

/** Runs one request through the filter. @returns the audit events, in order */
async function eventsOf(
  path: string,
  handler: Handler,
  rule: Partial<PolicyRule> = {},
  {
    objects = newObjectRecorder(),
    delay,
    notes,
    clock = newFakeClock(),
  }: { objects?: ObjectRecorder; delay?: Promise<boolean>; notes?: Record<string, string>; clock?: FakeClock } = {},
): Promise<Event[]> {
  const events: Event[] = [];
  const auditor = {
    evaluate: newPolicyEvaluator({ rules: [{ level: "Metadata", ...rule }] }),
    backend: {
      process(records: readonly { item(version: "audit.k8s.io/v1"): Buffer }[]) {
        events.push(...records.map((record) => JSON.parse(String(record.item("audit.k8s.io/v1")))));
        return delay ?? true;
      },
      stop: async () => {},
    },
    objects,
    metrics: newAuditMetrics(newMetricsRegistry()),
  };
  const exchange = new LoopbackExchange({ method: "GET", path, headers: {} });
  void exchange.response.then(({ body }) => body.on("error", () => {})); // the client of a request that is broken off
  const info = parseRequestInfo("GET", path);
  const request = new ServerRequest(exchange, info, clock.now(), isLongRunning(info));
  request.credentialNotes = notes;
  try {
    await audit(auditor, clock, discardLogger)(request, handler);
  } catch {
    // Stands for the chain's panic recovery, which responds on the exchange that the filter installed.
    if (request.exchange.headersSent) request.exchange.destroy();
    else request.exchange.respond(500, {});
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
    throw notFound({ group: "", resource: "pods" }, "x");
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

test("a watch that ends before it began counts as begun, and as closed early", async () => {
  const events = await eventsOf("/api/v1/pods?watch=1", async () => {});
  assert.deepEqual(stagesOf(events), ["RequestReceived", "ResponseStarted", "ResponseComplete"]);
  assert.equal(events.at(-1).responseStatus.message, "Connection closed early");
});

test("an answer is sent when its event is written, not before", async () => {
  for (const answer of [
    (exchange: AuditedExchange) => exchange.respond(200, {}, "ok"),
    (exchange: AuditedExchange) => exchange.stream(200, {}).end("ok"),
  ]) {
    const written = Promise.withResolvers<void>();
    const inner = new LoopbackExchange({ method: "GET", path: "/", headers: {} });
    const exchange = new AuditedExchange(inner, {
      ...{ started() {}, body() {}, wantsStreams: false, reserve: () => true, complete: () => written.promise },
    });
    let received = false;
    const client = inner.response.then(async ({ body }) => {
      for await (const _ of body) received = true;
    });
    answer(exchange);
    for (let turn = 0; turn < 5; turn++) await new Promise((next) => setImmediate(next));
    assert.equal(received, false);
    written.resolve();
    await client;
    assert.equal(received, true);
  }
});

const object = `{"kind":"Pod","name":"${"x".repeat(50)}"}`;
const json = { "content-type": "application/json" };
for (const { how, handler, seen } of [
  { how: "is answered", handler: ({ exchange }) => exchange.respond(200, json, object), seen: ["request", "response"] },
  {
    how: "is answered in parts",
    handler({ exchange }) {
      const stream = exchange.stream(200, json);
      stream.write(object.slice(0, 10));
      stream.end(object.slice(10));
    },
    seen: ["request", "response"],
  },
  {
    how: "is answered with more than fits",
    handler({ exchange }) {
      const stream = exchange.stream(200, json);
      for (const part of [object, object, object]) stream.write(part);
      stream.end();
    },
    seen: ["truncated"],
  },
  {
    how: "has an answer that cannot be decoded",
    handler: ({ exchange }) => exchange.respond(200, { ...json, "content-encoding": "gzip" }, object),
    seen: ["truncated"],
  },
  {
    how: "is broken off",
    handler({ exchange }) {
      exchange.stream(200, json).write(object);
      throw notFound({ group: "", resource: "pods" } as never, "x");
    },
    seen: ["request"],
  },
  {
    how: "panics",
    handler() {
      throw new TypeError("no");
    },
    seen: ["request"],
  },
] as { how: string; handler: (request: ServerRequest) => void; seen: string[] }[]) {
  for (const slow of [false, true]) {
    test(`a request that ${how} gives back the memory of its objects, once${slow ? ", when its backend has them" : ""}`, async () => {
      const maxHeldBytes = object.length * 2.5;
      const objects = newObjectRecorder({ maxHeldBytes });
      const taken = Promise.withResolvers<boolean>();
      const received: Handler = async (request) => {
        request.audit?.requestObject(undefined, () => object);
        handler(request);
      };
      const rule: Partial<PolicyRule> = { level: "RequestResponse", omitStages: ["RequestReceived"] };
      const events = eventsOf("/api/v1/pods", received, rule, { objects, ...(slow && { delay: taken.promise }) });
      taken.resolve(true);
      const last = (await events).at(-1);
      await new Promise((next) => setImmediate(next));
      const truncated = last.annotations?.["audit.k8s.io/truncated"] === "true";
      const has = [last.requestObject && "request", last.responseObject && "response", truncated && "truncated"];
      assert.deepEqual(has.filter(Boolean), seen);
      assert.equal(objects.reserve(maxHeldBytes), true, "nothing is held");
      assert.equal(objects.reserve(1), false, "nothing was given back twice");
    });
  }
}

test("a streamed answer of which a part does not fit is not recorded, also when later parts would fit", () => {
  const bodies: string[] = [];
  const room = [true, false, true, true];
  const exchange = new AuditedExchange(new LoopbackExchange({ method: "GET", path: "/", headers: {} }), {
    ...{ started() {}, wantsStreams: true, complete: () => undefined },
    reserve: () => room.shift() ?? true,
    body: (_headers, bytes) => void bodies.push(String(bytes)),
  });
  const stream = exchange.stream(200, json);
  for (const part of ["1", "2", "3"]) stream.write(part);
  stream.end("4");
  assert.deepEqual(bodies, []);
});

for (const { thrown, isPanic } of [
  ...[TypeError, RangeError, ReferenceError].map((Fault) => ({ thrown: new Fault("no"), isPanic: true })),
  { thrown: "a text", isPanic: true },
  { thrown: new Error("the store is full"), isPanic: false },
  { thrown: notFound({ group: "", resource: "pods" }, "x"), isPanic: false },
]) {
  test(`a handler that throws ${String(thrown)} ${isPanic ? "panics" : "does not panic"}`, async () => {
    const events = await eventsOf("/api/v1/pods", () => {
      throw thrown;
    });
    assert.deepEqual(stagesOf(events), ["RequestReceived", isPanic ? "Panic" : "ResponseComplete"]);
  });
}

test("what the credential of a request says is an annotation of its events", async () => {
  const notes = { "authentication.k8s.io/stale-token": "subject: robot" };
  const events = await eventsOf("/api/v1/pods", ({ exchange }) => exchange.respond(200, {}), {}, { notes });
  assert.deepEqual(events.at(-1).annotations, notes);
});

for (const { how, path = "/api/v1/pods", headers = {}, certificate, want } of [
  { how: "no credentials", want: "no credentials provided" },
  { how: "a token", headers: { authorization: "BEARER t" }, want: "attempted: bearer" },
  { how: "a scheme alone", headers: { authorization: "Bearer" }, want: "no credentials provided" },
  { how: "another scheme", headers: { authorization: "Digest a" }, want: "no credentials provided" },
  { how: "a token in the query", path: "/api?access_token=t", want: "attempted: access_token" },
  { how: "an empty token in the query", path: "/api?access_token=", want: "no credentials provided" },
  {
    how: "three credentials",
    path: "/api?access_token=t",
    headers: { authorization: "Basic a" },
    certificate: {},
    want: "attempted: basic, access_token, x509",
  },
] as { how: string; path?: string; headers?: Record<string, string>; certificate?: object; want: string }[]) {
  test(`the event of a failed authentication with ${how}: ${want}`, async () => {
    const events: Event[] = [];
    const auditor = {
      evaluate: newPolicyEvaluator({ rules: [{ level: "Metadata" }] }),
      backend: {
        process(records: readonly { item(version: "audit.k8s.io/v1"): Buffer }[]) {
          events.push(...records.map((record) => JSON.parse(String(record.item("audit.k8s.io/v1")))));
          return true;
        },
        stop: async () => {},
      },
      ...{ objects: newObjectRecorder(), metrics: newAuditMetrics(newMetricsRegistry()) },
    };
    const clock = newFakeClock();
    const exchange = new LoopbackExchange({ method: "GET", path, headers });
    if (certificate !== undefined) {
      Object.defineProperty(exchange, "tls", { value: { getPeerX509Certificate: () => certificate } });
    }
    const request = new ServerRequest(exchange, parseRequestInfo("GET", path), clock.now(), false);
    await auditFailedAuthentication(auditor, clock)(request);
    const [{ responseStatus, stage }] = events;
    assert.deepEqual(
      [responseStatus.code, responseStatus.message, stage],
      [401, `Authentication failed, ${want}`, "ResponseStarted"],
    );
  });
}

test("the last event has the time of the answer, however long its objects take to be encoded", async () => {
  const clock = newFakeClock();
  const convert = async () => {
    await clock.advance(5_000);
    return { json: Buffer.from(object) };
  };
  const objects = Object.assign(newObjectRecorder(), { convert });
  const rule: Partial<PolicyRule> = { level: "RequestResponse", omitStages: ["RequestReceived"] };
  const [event] = await eventsOf("/api/v1/pods", ({ exchange }) => exchange.respond(200, json, object), rule, { objects, clock });
  assert.deepEqual([event.stageTimestamp, clock.monotonic()], ["2022-01-01T00:00:00.000000Z", 5_000]);
  assert.equal(event.responseObject.kind, "Pod");
});
