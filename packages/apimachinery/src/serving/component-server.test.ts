import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type TestContext, test } from "node:test";
import { ConfigError } from "../flags/run-main.ts";
import { realClock } from "../process/clock/clock.ts";
import { newFakeClock } from "../process/clock/fake-clock.ts";
import { discardLogger } from "../process/logging/logger.ts";
import { newMetricsRegistry } from "../process/metrics/registry.ts";
import { freePort } from "../testing/etcd.ts";
import { listening } from "../testing/listening.ts";
import { waitFor } from "../testing/wait-for.ts";
import { type KeyPair, newCa, newCertificate } from "./certificates.ts";
import { type ComponentServer, type ComponentServingFlags, startComponentServer } from "./component-server.ts";
import type { Exchange } from "./exchange.ts";
import { startHttpServer } from "./https-server.ts";

const [serverCa, clusterCa, proxyCa, ownCa] = (await Promise.all(
  ["servers", "clients", "front proxies", "clients of the file"].map((commonName) => newCa({ commonName })),
)) as [KeyPair, KeyPair, KeyPair, KeyPair];

const flags: ComponentServingFlags = {
  "secure-port": 0,
  "bind-address": "127.0.0.1",
  "tls-cert-file": "",
  "tls-private-key-file": "",
  "cert-dir": "/nowhere",
  "tls-sni-cert-key": [],
  "tls-min-version": "",
  "tls-cipher-suites": [],
  "client-ca-file": "",
  "permit-port-sharing": false,
  "http2-max-streams-per-connection": 0,
  "authentication-kubeconfig": "",
  "authentication-skip-lookup": false,
  "authentication-tolerate-lookup-failure": false,
  "authentication-token-webhook-cache-ttl": 10_000,
  "authorization-kubeconfig": "",
  "authorization-webhook-cache-authorized-ttl": 10_000,
  "authorization-webhook-cache-unauthorized-ttl": 10_000,
  "authorization-always-allow-paths": ["/healthz", "/readyz", "/livez"],
  "requestheader-client-ca-file": "",
  "requestheader-allowed-names": [],
  "requestheader-username-headers": ["x-remote-user"],
  "requestheader-group-headers": ["x-remote-group"],
  "requestheader-extra-headers-prefix": ["x-remote-extra-"],
  profiling: false,
};

interface Answer {
  code: number;
  // biome-ignore lint/suspicious/noExplicitAny: a Status, or text
  body: any;
}

type Get = (path: string, options?: { token?: string; pair?: KeyPair; headers?: Record<string, string> }) => Promise<Answer>;

test("a secure port of 0 turns HTTPS off", async () => {
  const server = await startComponentServer({
    name: "kube-scheduler",
    flags,
    log: { ...discardLogger } as never,
    clock: newFakeClock(),
    metrics: newMetricsRegistry({}),
    checks: {},
    configz: () => ({}),
  });
  assert.equal(server, undefined);
});

test("an informative check answers by its name, and does not fail the page", async (t) => {
  let ill = true;
  const check = (): void => {
    if (ill) throw new Error("no such range");
  };
  const paths = { "authorization-always-allow-paths": ["/healthz", "/healthz/*"] };
  const get = await startComponent(t, paths, realClock, { nodeipam: check, job() {} });
  const failed = "[+]ping ok\n[-]nodeipam failed: reason withheld\n[+]job ok\nhealthz check passed\n";
  assert.deepEqual(await get("/healthz"), { code: 200, body: "ok" });
  assert.deepEqual(await get("/healthz?verbose"), { code: 200, body: failed });
  assert.deepEqual(await get("/healthz/nodeipam"), { code: 500, body: "internal server error: no such range\n" });
  assert.deepEqual(await get("/healthz/job"), { code: 200, body: "ok" });
  ill = false;
  assert.deepEqual(await get("/healthz/nodeipam"), { code: 200, body: "ok" });
});

test("--profiling shows debug pages, which are not found without it", async (t) => {
  for (const profiling of [true, false]) {
    const get = await startComponent(t, { profiling, "authorization-always-allow-paths": ["/*"] });
    const { code, body } = await get("/debug/pprof/");
    assert.deepEqual([code, /goroutine/.test(String(body))], profiling ? [200, true] : [404, false]);
    assert.deepEqual(await get("/debug"), { code: 404, body: "404 page not found\n" });
    assert.deepEqual(await get("/configz"), { code: 200, body: {} });
  }
});

test("a token's user comes from the API server, queried once per cache lifetime", async (t) => {
  const api = await startApi(t);
  const clock = newFakeClock();
  const get = await startComponent(t, { ...api.flags }, clock);
  assert.equal((await get("/metrics", { token: "good" })).code, 200);
  assert.equal((await get("/configz", { token: "good" })).code, 200);
  assert.deepEqual(api.requested, [
    "token good",
    "get /metrics as jane in readers,system:authenticated",
    "get /configz as jane in readers,system:authenticated",
  ]);
  const { code, body } = await get("/metrics", { token: "bad" });
  assert.equal(code, 401);
  assert.partialDeepStrictEqual(body, { kind: "Status", apiVersion: "v1", reason: "Unauthorized", message: "Unauthorized" });
  assert.equal((await get("/healthz", { token: "bad" })).code, 401, "a wrong credential is refused where none is needed");
  assert.equal(api.requested.filter((one) => one === "token bad").length, 1, "a no holds as well");

  api.requested.length = 0;
  await clock.advance(9_999);
  await get("/metrics", { token: "good" });
  assert.deepEqual(api.requested, [], "both answers are remembered");
  await clock.advance(1);
  await get("/metrics", { token: "good" });
  assert.deepEqual(api.requested, ["token good", "get /metrics as jane in readers,system:authenticated"]);
  const page = String((await get("/metrics", { token: "good" })).body);
  for (const series of [
    'authentication_token_cache_request_total{status="hit"} 4',
    'authentication_token_cache_request_total{status="miss"} 3',
    'authentication_token_cache_request_duration_seconds_count{status="miss"} 3',
    'authentication_token_cache_fetch_total{status="ok"} 3',
    'authentication_token_cache_active_fetch_count{status="in_flight"} 0',
    'apiserver_delegated_authn_request_total{code="201"} 3',
    'apiserver_delegated_authn_request_duration_seconds_count{code="201"} 3',
    'apiserver_delegated_authz_request_total{code="201"} 3',
    'apiserver_delegated_authz_request_duration_seconds_count{code="201"} 3',
  ])
    assert.ok(page.includes(`\n${series}\n`), series);
});

test("token and access reviews sent to the API server are counted", async (t) => {
  const get = await startComponent(t, (await startApi(t)).flags);
  await get("/metrics", { token: "good" });
  const { body } = await get("/metrics", { token: "good" });
  assert.match(String(body), /^rest_client_requests_total\{code="20[01]",method="POST",host="127\.0\.0\.1:\d+"\} [1-9]/m);
});

test("a request without credentials is anonymous: health pages are open, the API server decides about the others", async (t) => {
  const api = await startApi(t);
  const get = await startComponent(t, api.flags);
  for (const path of ["/healthz", "/livez", "/readyz"]) assert.equal((await get(path)).code, 200);
  assert.deepEqual(api.requested, [], "paths open to everybody need no query");
  const { code, body } = await get("/metrics");
  assert.equal(code, 403);
  assert.partialDeepStrictEqual(body, {
    kind: "Status",
    reason: "Forbidden",
    message: 'forbidden: User "system:anonymous" cannot get path "/metrics": no rule for it',
    details: {},
  });
  assert.equal((await get("/healthz/ping")).code, 403, "a path below one that is open is another path");
  assert.equal((await get("/healthz%2f..%2fmetrics")).code, 403);
});

test("without kubeconfig files tokens are ignored and all but the open paths are forbidden", async (t) => {
  const get = await startComponent(t, {});
  const { code, body } = await get("/metrics", { token: "good" });
  assert.equal(code, 403);
  assert.match(body.message, /User "system:anonymous"/);
  assert.equal((await get("/healthz", { token: "good" })).code, 200);
});

test("requests are refused while the API server is unreachable", async (t) => {
  const api = await startApi(t);
  const get = await startComponent(t, { ...api.flags, "authentication-skip-lookup": true });
  await api.stop();
  assert.equal((await get("/metrics", { token: "good" })).code, 401);
  const { code, body } = await get("/metrics");
  assert.equal(code, 500);
  assert.match(body, /^Internal Server Error: "\/metrics": /);
  assert.equal((await get("/healthz")).code, 200);
});

test("--client-ca-file: a certificate is its CommonName, one of another authority is refused", async (t) => {
  const api = await startApi(t);
  const get = await startComponent(t, { ...api.flags, "client-ca-file": write(t, "ca.crt", ownCa.certPem) });
  const jane = await newCertificate({ commonName: "jane", organizations: ["readers"], usages: ["client"], ca: ownCa });
  assert.equal((await get("/metrics", { pair: jane })).code, 200);
  const admin = await newCertificate({ commonName: "x", organizations: ["system:masters"], usages: ["client"], ca: ownCa });
  assert.equal((await get("/configz", { pair: admin })).code, 200);
  assert.deepEqual(api.requested, ["get /metrics as jane in readers,system:authenticated"], "system:masters needs no asking");
  for (const [what, pair] of [
    [
      "of the cluster's authority, since the file is given",
      await newCertificate({ commonName: "jane", usages: ["client"], ca: clusterCa }),
    ],
    ["for serving", await newCertificate({ commonName: "jane", usages: ["server"], ca: ownCa })],
  ] as const) {
    assert.equal((await get("/metrics", { pair })).code, 401, what);
  }
});

test("authorities without a file are read from the cluster's ConfigMap, and follow it", async (t) => {
  const api = await startApi(t);
  const get = await startComponent(t, api.flags);
  const jane = await newCertificate({ commonName: "jane", organizations: ["readers"], usages: ["client"], ca: clusterCa });
  const later = await newCertificate({ commonName: "jane", organizations: ["readers"], usages: ["client"], ca: ownCa });
  assert.equal((await get("/metrics", { pair: jane })).code, 200);
  assert.equal((await get("/metrics", { pair: later })).code, 401);
  api.publish({ ...published, "client-ca-file": ownCa.certPem });
  await waitFor(async () => (await get("/metrics", { pair: later })).code === 200, { what: "the new authority" });
  assert.equal((await get("/metrics", { pair: jane })).code, 401, "the old one is out");
});

test("an invalid entry of the ConfigMap keeps its last value, and the others are read", async (t) => {
  const api = await startApi(t);
  const get = await startComponent(t, api.flags);
  const jane = await aReader();
  assert.equal((await get("/metrics", { pair: jane })).code, 200);
  const front = await newCertificate({ commonName: "front-proxy-client", usages: ["client"], ca: ownCa });
  const headers = { "x-remote-user": "jane", "x-remote-group": "readers" };
  assert.equal((await get("/metrics", { pair: front, headers })).code, 401);
  api.publish({ ...published, "client-ca-file": "no certificate", "requestheader-client-ca-file": ownCa.certPem });
  await waitFor(async () => (await get("/metrics", { pair: front, headers })).code === 200, { what: "the new authority" });
  assert.equal((await get("/metrics", { pair: jane })).code, 200);
});

test("a server that failed to start watches no files", async (t) => {
  const clock = newFakeClock();
  const files = {
    "client-ca-file": write(t, "ca.crt", clusterCa.certPem),
    "requestheader-client-ca-file": write(t, "proxy.crt", "no certificate"),
  };
  const starting = startComponentServer({
    name: "kube-scheduler",
    flags: { ...flags, ...files, "cert-dir": dirname(files["client-ca-file"]), "secure-port": await freePort() },
    log: { ...discardLogger } as never,
    clock,
    metrics: newMetricsRegistry({}),
    checks: {},
    configz: () => ({}),
  });
  await assert.rejects(starting, ConfigError);
  assert.equal(clock.waiting, 0);
});

test("a server whose port is taken watches no files and keeps no client", async (t) => {
  const clock = newFakeClock();
  const taken = createServer();
  const port = await listening(t, taken);
  const ca = write(t, "ca.crt", clusterCa.certPem);
  const starting = startComponentServer({
    name: "kube-scheduler",
    flags: { ...flags, "client-ca-file": ca, "cert-dir": dirname(ca), "secure-port": port },
    log: { ...discardLogger } as never,
    clock,
    metrics: newMetricsRegistry({}),
    checks: {},
    configz: () => ({}),
  });
  await assert.rejects(starting, (err) => err instanceof ConfigError && /EADDRINUSE/.test(err.message));
  assert.equal(clock.waiting, 0);
});

test("the front proxy of the cluster's configuration sends user names in headers; other clients cannot", async (t) => {
  const api = await startApi(t);
  const get = await startComponent(t, api.flags);
  const headers = { "x-remote-user": "jane", "x-remote-group": "readers", "x-remote-extra-example.com%2Fid": "1" };
  const front = await newCertificate({ commonName: "front-proxy-client", usages: ["client"], ca: proxyCa });
  assert.equal((await get("/metrics", { pair: front, headers })).code, 200);
  assert.deepEqual(api.requested, ['get /metrics as jane in readers,system:authenticated {"example.com/id":["1"]}']);
  const other = await newCertificate({ commonName: "another", usages: ["client"], ca: proxyCa });
  assert.equal((await get("/metrics", { pair: other, headers })).code, 401);
  const ann = await newCertificate({ commonName: "ann", usages: ["client"], ca: clusterCa });
  assert.match((await get("/metrics", { pair: ann, headers })).body.message, /User "ann"/);
  assert.match((await get("/metrics", { headers })).body.message, /User "system:anonymous"/);
});

test("a front proxy CA from a file uses the default header names", async (t) => {
  const api = await startApi(t);
  const get = await startComponent(t, {
    ...api.flags,
    "authentication-skip-lookup": true,
    "requestheader-client-ca-file": write(t, "proxy.crt", proxyCa.certPem),
  });
  const front = await newCertificate({ commonName: "any name", usages: ["client"], ca: proxyCa });
  const headers = { "X-Remote-User": "jane", "X-Remote-Group": "readers" };
  assert.equal((await get("/metrics", { pair: front, headers })).code, 200);
});

test("with --authentication-skip-lookup nothing is read from the cluster", async (t) => {
  const api = await startApi(t);
  const get = await startComponent(t, { ...api.flags, "authentication-skip-lookup": true });
  const jane = await newCertificate({ commonName: "jane", usages: ["client"], ca: clusterCa });
  assert.match((await get("/metrics", { pair: jane })).body.message, /User "system:anonymous"/);
  assert.equal(api.lookUps, 0);
});

const aReader = () => newCertificate({ commonName: "jane", organizations: ["readers"], usages: ["client"], ca: clusterCa });
const upstreamsText = /^unable to load configmap based request-header-client-ca-file: .*configmaps/;

for (const code of [401, 403]) {
  test(`a lookup answered with ${code} by a ready server ends the daemon`, async (t) => {
    const api = await startApi(t);
    api.refuseWith = code;
    const { failed } = await startComponent(t, api.flags);
    await assert.rejects(failed, (err) => err instanceof ConfigError && upstreamsText.test(err.message));
    assert.equal(api.lookUps, 2, "the first may have come before the default roles");
  });
}

test("with --authentication-tolerate-lookup-failure a refused lookup does not end the daemon, and is repeated", async (t) => {
  const api = await startApi(t);
  api.refuseWith = 403;
  const get = await startComponent(t, { ...api.flags, "authentication-tolerate-lookup-failure": true });
  const jane = await aReader();
  assert.match((await get("/metrics", { pair: jane })).body.message, /User "system:anonymous"/);
  api.refuseWith = undefined;
  await waitFor(async () => (await get("/metrics", { pair: jane })).code === 200, { what: "the look-up after all" });
});

test("a missing ConfigMap is not waited for: no client certificate is trusted until it exists", async (t) => {
  const api = await startApi(t);
  api.refuseWith = 404;
  const get = await startComponent(t, api.flags);
  const jane = await aReader();
  assert.match((await get("/metrics", { pair: jane })).body.message, /User "system:anonymous"/);
  api.refuseWith = undefined;
  await waitFor(async () => (await get("/metrics", { pair: jane })).code === 200, { what: "the config map" });
});

for (const { name, readyz, refuseWith } of [
  { name: "answers 503", readyz: 500, refuseWith: 503 },
  { name: "does not know the default roles", readyz: 403, refuseWith: 403 },
  { name: "is ready and fails", readyz: 200, refuseWith: 500 },
]) {
  test(`the lookup is repeated while the API server ${name}`, async (t) => {
    const api = await startApi(t);
    Object.assign(api, { readyz, refuseWith });
    const get = await startComponent(t, api.flags);
    assert.equal((await get("/healthz")).code, 200);
    await waitFor(() => (readyz === 200 ? api.lookUps > 2 : api.readinessRequests > 2), { what: "it to go on asking" });
    Object.assign(api, { readyz: 200, refuseWith: undefined });
    const jane = await aReader();
    await waitFor(async () => (await get("/metrics", { pair: jane })).code === 200, { what: "the look-up" });
  });
}

test("the lookup waits for an unreachable API server: no client certificate is trusted until then", async (t) => {
  const port = await freePort();
  const absent = await startApi(t, port);
  await absent.stop();
  const get = await startComponent(t, absent.flags);
  assert.equal((await get("/healthz")).code, 200);
  const jane = await aReader();
  assert.notEqual((await get("/metrics", { pair: jane })).code, 200);
  await startApi(t, port);
  await waitFor(async () => (await get("/metrics", { pair: jane })).code === 200, { what: "the look-up" });
});

const published = {
  "client-ca-file": clusterCa.certPem,
  "requestheader-client-ca-file": proxyCa.certPem,
  "requestheader-allowed-names": '["front-proxy-client"]',
  "requestheader-username-headers": '["X-Remote-User"]',
  "requestheader-group-headers": '["X-Remote-Group"]',
  "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
};

function write(t: TestContext, name: string, text: string): string {
  const directory = mkdtempSync(join(tmpdir(), "cox-component-"));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
}

/** Starts a minimal API server: reviews, and one ConfigMap with its watch. The group `readers` is authorized. */
async function startApi(t: TestContext, port = 0) {
  const requested: string[] = [];
  const watchers = new Set<(event: object) => void>();
  let version = 1;
  let data: Record<string, string> = published;
  const state = { lookUps: 0, readinessRequests: 0, readyz: 200, refuseWith: undefined as number | undefined };
  const object = (): object => ({
    kind: "ConfigMap",
    apiVersion: "v1",
    metadata: {
      name: "extension-apiserver-authentication",
      namespace: "kube-system",
      uid: "u",
      resourceVersion: String(version),
    },
    data,
  });
  const json = { "content-type": "application/json" };
  const answer = (exchange: Exchange): void => {
    if (exchange.url === "/readyz") readiness(exchange);
    else configMap(exchange);
  };
  const readiness = (exchange: Exchange): void => {
    state.readinessRequests++;
    exchange.respond(state.readyz, { "content-type": "text/plain" }, state.readyz === 200 ? "ok" : "[-]some/hook failed");
  };
  const configMap = (exchange: Exchange): void => {
    const { searchParams } = new URL(exchange.url, "https://x");
    if (searchParams.get("watch")) {
      const stream = exchange.stream(200, json);
      const send = (event: object): void => void stream.write(`${JSON.stringify(event)}\n`);
      watchers.add(send);
      exchange.signal.addEventListener("abort", () => watchers.delete(send));
      return;
    }
    state.lookUps++;
    if (state.refuseWith !== undefined) {
      const status = {
        kind: "Status",
        apiVersion: "v1",
        status: "Failure",
        code: state.refuseWith,
        message: "configmaps is forbidden",
      };
      exchange.respond(state.refuseWith, json, JSON.stringify(status));
      return;
    }
    const isOne = exchange.url.split("?")[0]?.endsWith("/extension-apiserver-authentication");
    const list = { kind: "ConfigMapList", apiVersion: "v1", metadata: { resourceVersion: String(version) }, items: [object()] };
    exchange.respond(200, json, JSON.stringify(isOne ? object() : list));
  };
  const review = async (exchange: Exchange): Promise<void> => {
    const { kind, apiVersion, spec } = JSON.parse((await exchange.body(10_000)).toString("utf8"));
    let status: object;
    if (kind === "TokenReview") {
      requested.push(`token ${spec.token}`);
      const user = { username: "jane", uid: "1", groups: ["readers"] };
      status = spec.token === "good" ? { authenticated: true, user } : { authenticated: false };
    } else {
      const { path, verb } = spec.nonResourceAttributes;
      const extra = Object.keys(spec.extra).length === 0 ? "" : ` ${JSON.stringify(spec.extra)}`;
      requested.push(`${verb} ${path} as ${spec.user} in ${spec.groups.join(",")}${extra}`);
      status = spec.groups.includes("readers") ? { allowed: true } : { allowed: false, reason: "no rule for it" };
    }
    exchange.respond(201, json, JSON.stringify({ kind, apiVersion, metadata: {}, spec, status }));
  };
  const pair = await newCertificate({ commonName: "api", ips: ["127.0.0.1"], usages: ["server"], ca: serverCa });
  const server = await startHttpServer({
    port,
    bindAddress: "127.0.0.1",
    tls: { cert: pair.certPem, key: pair.keyPem },
    log: discardLogger,
    handler: (exchange) => (exchange.method === "POST" ? review(exchange) : answer(exchange)),
  });
  const stop = (): Promise<void> => server.close(0);
  t.after(stop);
  const kubeconfig = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "x",
    contexts: [{ name: "x", context: { cluster: "x", user: "x" } }],
    users: [{ name: "x", user: { token: "own" } }],
    clusters: [
      {
        name: "x",
        cluster: {
          server: `https://127.0.0.1:${server.port}`,
          "certificate-authority-data": Buffer.from(serverCa.certPem).toString("base64"),
        },
      },
    ],
  };
  const path = write(t, "kubeconfig", JSON.stringify(kubeconfig));
  return Object.assign(state, {
    requested,
    stop,
    flags: { "authentication-kubeconfig": path, "authorization-kubeconfig": path },
    publish(next: Record<string, string>) {
      version++;
      data = next;
      for (const send of watchers) send({ type: "MODIFIED", object: object() });
    },
  });
}

async function startComponent(
  t: TestContext,
  given: Partial<ComponentServingFlags>,
  clock = realClock,
  informativeChecks: Record<string, () => void> = {},
): Promise<Get & Pick<ComponentServer, "failed">> {
  const serving = await newCertificate({ commonName: "component", ips: ["127.0.0.1"], usages: ["server"], ca: serverCa });
  const server = await startComponentServer({
    name: "kube-scheduler",
    flags: {
      ...flags,
      "secure-port": await freePort(),
      "tls-cert-file": write(t, "tls.crt", serving.certPem),
      "tls-private-key-file": write(t, "tls.key", serving.keyPem),
      ...given,
    },
    log: { ...discardLogger } as never,
    clock,
    metrics: newMetricsRegistry({}),
    checks: {},
    informativeChecks,
    configz: () => ({}),
  });
  assert.ok(server);
  t.after(() => server.close(0));
  const get: Get = (path, { token, pair, headers = {} } = {}) =>
    new Promise((resolve, reject) => {
      const sent = request(
        {
          host: "127.0.0.1",
          port: server.port,
          path,
          ca: serverCa.certPem,
          agent: false,
          ...(pair === undefined ? {} : { cert: pair.certPem, key: pair.keyPem }),
          headers: { ...headers, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) },
        },
        (response) => {
          const chunks: Buffer[] = [];
          response.on("data", (chunk: Buffer) => chunks.push(chunk));
          response.once("end", () => {
            const text = Buffer.concat(chunks).toString("utf8");
            const isJson = response.headers["content-type"] === "application/json";
            resolve({ code: response.statusCode ?? 0, body: isJson ? JSON.parse(text) : text });
          });
        },
      );
      sent.once("error", reject);
      sent.end();
    });
  return Object.assign(get, { failed: server.failed });
}
