import assert from "node:assert/strict";
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
