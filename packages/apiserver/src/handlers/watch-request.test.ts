/** What a watch asks of its store, and what it refuses before it begins. */
import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import { hasFields } from "@coxswain/apimachinery/testing/has-fields";
import { LoopbackExchange } from "../loopback/exchange.ts";
import { parseRequestInfo } from "../request/request-info.ts";
import { ServerRequest } from "../request/server-request.ts";
import { type Call, handlerGates } from "./env.ts";
import { listOptions } from "./options.ts";
import { watch } from "./watch.ts";

const asked = new Error("the store was asked");

/** Runs a watch whose store fails; returns the store's arguments. */
async function watched(query: string, accept = "application/json") {
  const clock = newFakeClock();
  const client = new AbortController();
  const path = `/api/v1/namespaces/web/configmaps?watch=1${query}`;
  const requests: { bookmarks: boolean; revision?: number; deadlineMs: number; signal: AbortSignal }[] = [];
  const exchange = new LoopbackExchange({ method: "GET", path, headers: { accept }, body: "", signal: client.signal });
  const ctx = new ServerRequest(exchange, parseRequestInfo("GET", path), 0, false);
  const kind = { group: "", version: "v1", kind: "ConfigMap" };
  const call = {
    env: {
      services: { now: () => 1000, turns: new Turns(), featureEnabled: () => true },
      gates: handlerGates(() => true),
      minRequestTimeoutMs: 60_000,
      clock,
    },
    ctx,
    served: {
      store: {
        async watch(_namespace: string, request: (typeof requests)[number]) {
          requests.push(request);
          throw asked;
        },
      },
      definition: { group: "", resource: "configmaps", listKind: "ConfigMapList", table: { columns: [] } },
      version: { version: "v1" },
      ...{ kind, hubKind: kind },
    },
    ...{ namespace: "web", name: "", subresource: "" },
  } as unknown as Call;
  const listeners = (): number => getEventListeners(ctx.signal, "abort").length;
  const before = listeners(); // of the exchange
  const error = await watch(call, listOptions(ctx.query)).then(
    () => undefined,
    (err: Error) => err,
  );
  return { requests, error, left: [clock.waiting, listeners() - before] };
}

for (const { query, want } of [
  { query: "", want: false },
  { query: "&allowWatchBookmarks=false", want: false },
  { query: "&allowWatchBookmarks=true", want: true },
]) {
  test(`a watch with ${query || "no option"} ${want ? "wants" : "gets no"} bookmarks`, async () => {
    const { requests, error } = await watched(query);
    assert.equal(error, asked);
    assert.equal(requests[0]?.bookmarks, want);
  });
}

test("the store is told when the watch will end, and that it has ended when the store fails", async () => {
  const { requests, left } = await watched("&timeoutSeconds=5&resourceVersion=7");
  hasFields(requests, [{ deadlineMs: 6000, revision: 7 }]);
  assert.ok(requests[0]?.signal.aborted);
  assert.deepEqual(left, [0, 0], "neither a timer nor a listener is left");
});

test("a table's rows with an unknown form of objects are refused before the watch begins", async () => {
  const table = "application/json;as=Table;v=v1;g=meta.k8s.io";
  const { requests, error } = await watched("&includeObject=Some", table);
  assert.deepEqual(requests, []);
  assert.match(String(error), /Some/);
  assert.equal((await watched("&includeObject=None", table)).error, asked);
  assert.equal((await watched("&includeObject=Some")).error, asked, "matters to tables alone");
});
