/** Responses of a server from when it listens until it is ready. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { freePort, startOwnEtcd } from "@coxswain/apimachinery/testing/etcd";
import { pauseProcess } from "@coxswain/apimachinery/testing/pause-process";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { launchTestServer, newHttp, type TestResponse } from "../testing/start-test-server.ts";
import { untilServable } from "./start-gate.ts";

const authenticationInfo = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";

test("a server that is not ready answers 503 except for health and the version, and 401 or 403 to no request", async (t) => {
  const etcd = await startOwnEtcd(t);
  await pauseProcess(etcd.pid);
  const server = await launchTestServer(t, [`--etcd-servers=${etcd.endpoint}`]);
  const manager = await server.clientCertificate("system:kube-controller-manager");
  /** One connection per request, since the server closes those that it rejects with 503. */
  const get = async (path: string, certificate?: typeof manager): Promise<TestResponse> => {
    const http = newHttp(server.url, server.ca, certificate);
    try {
      return await http.request("GET", path);
    } finally {
      http.close();
    }
  };

  for (const path of ["/api/v1/nodes", "/apis", "/metrics", "/openapi/v2", "/healthzz", authenticationInfo]) {
    const { code, headers, body } = await get(path, manager);
    assert.equal(code, 503, path);
    assert.equal(headers["retry-after"], "1", path);
    assert.partialDeepStrictEqual(body, { kind: "Status", reason: "ServiceUnavailable", details: { retryAfterSeconds: 1 } });
  }
  for (const { path, code } of [
    { path: "/readyz", code: 500 },
    { path: "/livez", code: 500 },
    { path: "/livez/ping", code: 200 },
    { path: "/version", code: 200 },
  ]) {
    assert.equal((await get(path)).code, code, path);
  }

  process.kill(etcd.pid, "SIGCONT");
  const codes = new Set<number>();
  const asking = Array.from({ length: 4 }, () =>
    waitFor(async () => {
      const { code } = await get(authenticationInfo, manager);
      codes.add(code);
      return code === 200;
    }),
  );
  await waitFor(async () => (await get("/readyz")).code === 200);
  assert.equal((await get(authenticationInfo, manager)).code, 200, "the first request after readyz");
  await Promise.all(asking);
  assert.deepEqual([...codes].sort(), [200, 503]);
  await server.stop(); // stopped before its etcd
});

test("without anonymous requests a server that starts does not say its version either", async (t) => {
  const nobody = `--etcd-servers=http://127.0.0.1:${await freePort()}`;
  const server = await launchTestServer(t, [nobody, "--anonymous-auth=false"]);
  assert.equal((await server.request("GET", "/version")).code, 503);
});

function aStart() {
  const clock = newFakeClock();
  const state = { missing: ["rbac/bootstrap-roles"] as string[], failingMs: 0 };
  const ending = new AbortController();
  const lastStep = Promise.withResolvers<void>();
  let servable = false;
  const done = untilServable({
    missing: () => state.missing,
    failingMs: () => state.failingMs,
    lastStep: lastStep.promise,
    clock,
    log: discardLogger,
    signal: ending.signal,
  }).then(() => {
    servable = true;
  });
  return { clock, state, ending, lastStep, done, isServable: () => servable };
}

test("the start has ended when its last step has ended", async () => {
  const { state, lastStep, done } = aStart();
  state.missing = [];
  lastStep.resolve();
  await done; // the clock stands still
});

for (const end of ["resolve", "reject"] as const) {
  test(`after the last step ${end}s, a step that is still missing is waited for`, async () => {
    const { clock, state, lastStep, done, isServable } = aStart();
    state.missing = ["informer-sync"];
    lastStep[end](new Error("stopped") as never);
    await clock.advance(1_000);
    assert.equal(isServable(), false);
    state.missing = [];
    await clock.advance(100);
    await done;
  });
}

test("a slow start is awaited without a limit", async () => {
  const { clock, state, done, isServable } = aStart();
  await clock.advance(600_000);
  assert.equal(isServable(), false);
  state.missing = [];
  await clock.advance(100);
  await done;
});

test("a start that has failed for a minute lets requests in, so that the cause can be repaired", async () => {
  const { clock, state, done, isServable } = aStart();
  state.failingMs = 59_999;
  await clock.advance(1_000);
  assert.equal(isServable(), false);
  state.failingMs = 60_000;
  await clock.advance(100);
  await done;
});

test("a server that is stopped while it starts waits no longer", async () => {
  const { ending, done } = aStart();
  ending.abort(new Error("stopped"));
  await assert.rejects(done, /stopped/);
});

test("a server is not ready, and opens to no request, before an admission plugin knows its objects", async (t) => {
  const listed = Promise.withResolvers<void>();
  t.after(() => listed.resolve());
  const server = await launchTestServer(t, [], undefined, (client) => ({
    ...client,
    async range(request) {
      if (request.key.includes("/limitranges/")) await listed.promise;
      return client.range(request);
    },
  }));
  const failing = async () => {
    const { text } = await server.request("GET", "/readyz?verbose");
    return [...text.matchAll(/^\[-\](\S+)/gm)].map(([, name]) => name);
  };
  const hooks = ["start-kube-apiserver-admission-initializer", "generic-apiserver-start-informers"];
  const waiting = ["informer-sync", ...hooks.map((name) => `poststarthook/${name}`)];
  await waitFor(async () => (await failing()).join() === waiting.join(), { what: "all else" });
  assert.equal((await server.request("GET", "/api/v1/namespaces")).code, 503);
  listed.resolve();
  await waitFor(async () => (await failing()).length === 0, { what: "the server to be ready" });
  assert.equal((await server.request("GET", "/api/v1/namespaces")).code, 200);
});
