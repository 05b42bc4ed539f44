import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { test } from "node:test";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { newHttp, startTestServer } from "../testing/start-test-server.ts";

test("while it waits for its last request a server sends others elsewhere, but for health and metrics", async (t) => {
  const server = await startTestServer(t, ["--shutdown-send-retry-after=true"]);
  const headers = { authorization: `Bearer ${server.adminToken}` };
  // A request in progress: its body has not been received yet.
  const body = JSON.stringify({ metadata: { name: "last" } });
  const last = request(`${server.url}/api/v1/namespaces/default/configmaps`, {
    method: "POST",
    ca: server.ca,
    headers: { ...headers, "content-type": "application/json", "content-length": body.length },
  });
  const answered = new Promise<number>((resolve, reject) => {
    last.on("response", (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    last.on("error", reject);
  });
  last.write(body.slice(0, 5));
  const http = newHttp(server.url, server.ca);
  t.after(() => http.close());
  const get = (path: string) => http.request("GET", path, undefined, headers);
  await waitFor(
    async () => /apiserver_current_inflight_requests\{request_kind="mutating"\} [1-9]/.test((await get("/metrics")).text),
    {
      what: "the request to be under way",
    },
  );

  const stopped = server.stop(60_000);
  const refused = await waitFor(
    async () => {
      const answer = await get("/api/v1/namespaces/default");
      return answer.code === 429 && answer;
    },
    { what: "the server to drain" },
  );
  assert.equal(refused.headers["retry-after"], "5");
  for (const { path, code } of [
    { path: "/livez", code: 200 },
    { path: "/healthz", code: 200 },
    { path: "/readyz", code: 500 },
    { path: "/readyz/etcd", code: 200 },
    { path: "/metrics", code: 200 },
    { path: "/version", code: 429 },
  ]) {
    assert.equal((await get(path)).code, code, path);
  }
  last.end(body.slice(5));
  assert.equal(await answered, 201, "what was under way is completed");
  await stopped;
});

test("a server that stops ends its watches when the last short request is answered, not at the end of its grace period", async (t) => {
  const server = await startTestServer(t);
  const headers = { authorization: `Bearer ${server.adminToken}` };
  const watch = request(`${server.url}/api/v1/namespaces/default/configmaps?watch=true`, { ca: server.ca, headers });
  const [events] = (await once(watch.end(), "response")) as [IncomingMessage];
  const ended = once(events.resume(), "end");
  const began = performance.now();
  await server.stop(300_000);
  await ended;
  const tookMs = performance.now() - began;
  assert.ok(tookMs < 200_000, `${tookMs} ms`);
});
