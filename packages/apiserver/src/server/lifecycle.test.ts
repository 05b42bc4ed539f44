/** Health checks during startup and shutdown. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { LoopbackExchange } from "../loopback/exchange.ts";
import { newHttp, startTestServer } from "../testing/start-test-server.ts";
import { Edge } from "./edge.ts";

function anEdge(livezGraceMs: number) {
  const clock = newFakeClock();
  const edge = new Edge({
    metrics: newMetricsRegistry({}),
    log: discardLogger,
    clock,
    profiling: undefined,
    livezGraceMs,
    documents: undefined,
  });
  const fetchText = async (path: string): Promise<{ code: number; text: string }> => {
    const exchange = new LoopbackExchange({ method: "GET", path, headers: {} });
    await edge.handle(exchange);
    const { status, body } = await exchange.response;
    return { code: status, text: (await Array.fromAsync(body)).join("") };
  };
  return { clock, edge, fetchText };
}

test("within --livez-grace-period a hook that is not done is taken as passed, by /livez alone", async () => {
  const { clock, edge, fetchText } = anEdge(10_000);
  let done = false;
  edge.addHook("poststarthook/slow", () => (done ? undefined : "not finished"));
  const codes = async () => [
    (await fetchText("/livez")).code,
    (await fetchText("/readyz")).code,
    (await fetchText("/healthz")).code,
  ];
  assert.deepEqual(await codes(), [200, 500, 500]);
  assert.match((await fetchText("/readyz")).text, /\[-\]poststarthook\/slow failed: reason withheld\n/);
  await clock.advance(10_000);
  assert.deepEqual(await codes(), [500, 500, 500]);
  assert.equal(
    (await fetchText("/livez")).text,
    "[+]ping ok\n[+]log ok\n[-]poststarthook/slow failed: reason withheld\nlivez check failed\n",
  );
  assert.equal((await fetchText("/livez/poststarthook/slow")).text, "internal server error: not finished\n");
  done = true;
  assert.deepEqual(await codes(), [200, 200, 200]);
});

test("a clock that is set back does not lengthen --livez-grace-period", async () => {
  const { clock, edge, fetchText } = anEdge(10_000);
  edge.addHook("poststarthook/slow", () => "not finished");
  clock.setOn(-3_600_000);
  await clock.advance(10_000);
  assert.equal((await fetchText("/livez")).code, 500);
});

test("/readyz fails during --shutdown-delay-duration while requests are still served, then the port is closed", async () => {
  const server = await startTestServer(undefined, ["--shutdown-delay-duration=1s"]);
  const http = newHttp(server.url, server.ca);
  const get = (path: string) => http.request("GET", path, undefined, { authorization: `Bearer ${server.adminToken}` });
  assert.equal((await get("/readyz")).code, 200);
  const stopped = server.stop();
  const ready = await get("/readyz");
  assert.equal(ready.code, 500);
  assert.ok(ready.text.endsWith("[-]shutdown failed: reason withheld\nreadyz check failed\n"));
  const others = ["/livez", "/healthz", "/api/v1/namespaces/default"];
  for (const path of others) assert.equal((await get(path)).code, 200, path);
  await stopped;
  http.close();
  await assert.rejects(newHttp(server.url, server.ca).request("GET", "/livez"), /ECONNREFUSED/);
});

test("the failing checks of /readyz are named, and the paths of all checks are in the index", async () => {
  const { edge } = anEdge(0);
  let isWell = false;
  const run = async (): Promise<void> => {
    if (!isWell) throw new Error("no");
  };
  edge.addCheck("etcd", run);
  edge.addReadyCheck("informer-sync", async () => {});
  edge.addHook("poststarthook/slow", () => (isWell ? undefined : "not finished"));
  assert.deepEqual(await edge.failedChecks(), ["etcd", "poststarthook/slow"]);
  isWell = true;
  assert.deepEqual(await edge.failedChecks(), []);
  const everywhere = ["", "/ping", "/log", "/etcd"];
  const pathsOf = (page: string, ...names: string[]) => names.map((name) => `/${page}${name}`);
  assert.deepEqual(edge.paths(), [
    ...pathsOf("healthz", ...everywhere, "/poststarthook/slow"),
    ...pathsOf("livez", ...everywhere, "/poststarthook/slow"),
    ...pathsOf("readyz", ...everywhere, "/informer-sync", "/poststarthook/slow", "/shutdown"),
    "/metrics",
  ]);
  for (const [path, isOurs] of [
    ["/metrics", true],
    ["/livez/etcd", true],
    ["/openid/v1/jwks", false],
    ["/debug/pprof/", false],
    ["/api", false],
  ] as const)
    assert.equal(edge.handles(path), isOurs, path);
  edge.shutDown();
  assert.deepEqual(await edge.failedChecks(), ["shutdown"]);
});
