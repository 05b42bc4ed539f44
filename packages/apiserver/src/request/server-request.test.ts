import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";
import { parseRequestInfo } from "./request-info.ts";
import { ServerRequest } from "./server-request.ts";

/** @param client its signal must not be created while the client is connected */
function aRequest(client: { gone: boolean }): ServerRequest {
  const exchange = {
    headers: {},
    get isGone() {
      return client.gone;
    },
    get signal() {
      assert.ok(client.gone, "a signal was made");
      return AbortSignal.abort(new Error("the client disconnected"));
    },
  } as unknown as Exchange;
  return new ServerRequest(exchange, parseRequestInfo("PUT", "/api/v1/namespaces/a/configmaps/b"), 0, false);
}

test("a running request answers isAborted without creating a signal", () => {
  aRequest({ gone: false }).throwIfAborted();
});

test("a request whose client has disconnected throws, before and after its signal was created", () => {
  const client = { gone: false };
  const request = aRequest(client);
  request.throwIfAborted();
  client.gone = true;
  assert.throws(() => request.throwIfAborted(), /the client disconnected/);
  assert.throws(() => request.throwIfAborted(), /the client disconnected/);
});

test("a request whose time is up throws although its signal was never read", () => {
  const { signal } = new AbortController();
  const exchange = { headers: {}, isGone: false, signal } as unknown as Exchange;
  const request = new ServerRequest(exchange, parseRequestInfo("PUT", "/api/v1/namespaces/a/configmaps/b"), 0, false);
  request.deadlineMs = 1;
  request.throwIfAborted();
  request.abort(new Error("time is up"));
  assert.throws(() => request.throwIfAborted(), /time is up/);
});

/** @param path of a request of limited duration, unless it is a watch */
function aRequestFor(path: string, { headers = {}, stopping }: { headers?: object; stopping?: AbortSignal } = {}) {
  const client = new AbortController();
  const exchange = { headers, isGone: false, url: path, signal: client.signal } as unknown as Exchange;
  const isWatch = path.includes("watch");
  return { client, request: new ServerRequest(exchange, parseRequestInfo("GET", path), 0, isWatch, stopping) };
}
const watchPath = "/api/v1/pods?watch=1";

test("the end of the server ends a watch, and no request of limited duration", () => {
  for (const [path, want] of [
    [watchPath, true],
    ["/api/v1/pods", false],
  ] as const) {
    const stopping = new AbortController();
    const { request } = aRequestFor(path, { stopping: stopping.signal });
    const { signal } = request;
    assert.equal(signal.aborted, false);
    stopping.abort(new Error("the server stops"));
    assert.equal(signal.aborted, want, path);
    assert.equal(request.signal, signal);
  }
});

test("a watch ends with its client, with the client's reason, and at once when the server has stopped already", () => {
  const { client, request } = aRequestFor(watchPath, { stopping: new AbortController().signal });
  const { signal } = request;
  client.abort(new Error("gone"));
  assert.match(String(signal.reason), /gone/);
  const late = aRequestFor(watchPath, { stopping: AbortSignal.abort(new Error("stopped")) });
  assert.throws(() => late.request.throwIfAborted(), /stopped/);
});

test("a client that leaves ends a request with a deadline, too", () => {
  const { client, request } = aRequestFor("/api/v1/pods");
  request.deadlineMs = 5;
  const { signal } = request;
  client.abort(new Error("gone"));
  assert.match(String(signal.reason), /gone/);
});

test("of validating webhooks, which run together, the slowest counts; mutating ones add up", () => {
  const { request } = aRequestFor("/api/v1/pods");
  for (const ms of [10, 20]) request.webhookTook("admit", ms);
  for (const ms of [5, 30, 20, 40]) request.webhookTook("validating", ms);
  assert.equal(request.webhookMs, 10 + 20 + 40);
});

for (const { id, isTaken } of [
  { id: "a", isTaken: true },
  { id: "x".repeat(64), isTaken: true },
  { id: "x".repeat(65), isTaken: false },
  { id: "a b", isTaken: false },
  { id: "", isTaken: false },
  { id: "\u00e9", isTaken: false },
  { id: undefined, isTaken: false },
]) {
  const given = id === undefined ? "an absent one" : `${JSON.stringify(id).slice(0, 20)} of ${id.length} characters`;
  test(`the audit id: ${given} is ${isTaken ? "taken" : "replaced"}`, () => {
    const { auditId } = aRequestFor("/api", { headers: { "audit-id": id } }).request;
    if (isTaken) assert.equal(auditId, id);
    else assert.match(auditId, /^[0-9a-f]{8}-[0-9a-f-]{27}$/);
  });
}

test("a query is read once, and a request without credentials is the anonymous user's", () => {
  const { request } = aRequestFor("/api/v1/pods?a=1");
  assert.equal(request.query.get("a"), "1");
  assert.equal(request.query, request.query);
  assert.deepEqual(request.user, { name: "system:anonymous", groups: ["system:unauthenticated"] });
});

test("a request that was handled no longer follows the end of the server, which keeps nothing of it", () => {
  const stopping = new AbortController();
  const listeners = () => getEventListeners(stopping.signal, "abort").length;
  const { request, client } = aRequestFor(watchPath, { stopping: stopping.signal });
  request.handled();
  const { signal } = request;
  assert.equal(listeners(), 1);
  request.handled();
  assert.equal(listeners(), 0);
  stopping.abort(new Error("the server stops"));
  assert.equal(signal.aborted, false);
  client.abort(new Error("gone"));
  assert.match(String(signal.reason), /gone/);
});
