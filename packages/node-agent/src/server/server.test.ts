import assert from "node:assert/strict";
import { request } from "node:http";
import { test } from "node:test";
import type { Client } from "@coxswain/apimachinery/client/client";
import { newFakeClock } from "@coxswain/apimachinery/process/clock/fake-clock";
import { discardLogger } from "@coxswain/apimachinery/process/logging/logger";
import { newMetricsRegistry } from "@coxswain/apimachinery/process/metrics/registry";
import { newCertificatePool } from "@coxswain/apimachinery/serving/authentication/x509";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";
import { startHttpServer } from "@coxswain/apimachinery/serving/https-server";
import { longestTurnOf } from "@coxswain/apimachinery/testing/cpu-time";
import type { NodePod } from "../pod/pod.ts";
import { RuntimeError } from "../runtime/runtime.ts";
import { aContainer, aNodePod } from "../testing/builders.ts";
import { newFakeRuntime } from "../testing/fake-runtime.ts";
import { attributesOf, newAuth } from "./auth.ts";
import { newHealthHandler, newKubeletHandler, type ServerContext } from "./server.ts";
import { serveKubelet } from "./testing.ts";

const everyRoute = [
  "/healthz",
  "/pods",
  "/stats/summary",
  "/metrics",
  "/metrics/cadvisor",
  "/metrics/resource",
  "/metrics/probes",
  "/containerLogs/default/web/main",
  "/exec/default/web/main",
  "/attach/default/web/main",
  "/portForward/default/web",
  "/run/default/web/main",
  "/runningpods/",
  "/configz",
  "/logs/",
  "/debug/pprof/",
  "/nothing",
  "/logs/%2e%2e/",
  "/pods;x",
  "/pods/%00",
];

test("every route requires authentication and authorization", async (t) => {
  const { get } = await serveKubelet(t);
  for (const path of everyRoute) {
    assert.equal((await get(path, "")).status, 401, `${path} without credentials`);
    assert.equal((await get(path, "bad")).status, 401, `${path} with wrong ones`);
    assert.equal((await get(path, "nobody")).status, 403, `${path} without rights`);
  }
  assert.equal((await get("/pods", "nobody")).body, "Forbidden (user=nobody, verb=get, resource=nodes, subresource=proxy)\n");
});

test("a list of 100 pods of 1.5 MB each is written without a long turn", async (t) => {
  const env = Array.from({ length: 40_000 }, (_, at) => ({ name: `VARIABLE_${at}`, value: "v" }));
  const pod = aNodePod({ containers: [aContainer({ env })] });
  const { port } = await serveKubelet(t, { readOnly: true, pods: Array.from({ length: 100 }, () => pod) });
  const longest = await longestTurnOf(300, async () => {
    const { promise, resolve } = Promise.withResolvers<number>();
    request({ port, path: "/pods", agent: false }, (response) => {
      let bytes = 0;
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
      });
      response.on("end", () => resolve(bytes));
    }).end();
    assert.ok((await promise) > 100 * 1_400_000);
  });
  t.diagnostic(`${longest} ms`);
  assert.ok(longest < 300, `${longest} ms`);
});

test("/pods is a list, also of no pods", async (t) => {
  for (const pods of [[], [aNodePod(), aNodePod({}, { name: "other", uid: "uid-2" })]]) {
    const { get } = await serveKubelet(t, { readOnly: true, pods });
    const { kind, apiVersion, metadata, items } = JSON.parse((await get("/pods")).body);
    assert.deepEqual({ kind, apiVersion, metadata }, { kind: "PodList", apiVersion: "v1", metadata: {} });
    assert.deepEqual(
      items.map((item: NodePod) => item.metadata.name),
      pods.map((pod) => pod.metadata.name),
    );
  }
});

test("requests without credentials are those of system:anonymous, and an invalid token is 401", async (t) => {
  const { get, reviews } = await serveKubelet(t, { anonymous: true });
  assert.equal((await get("/pods", "")).status, 403);
  assert.deepEqual(reviews, ["access system:anonymous get proxy"]);
  assert.equal((await get("/pods", "bad")).status, 401);
  assert.equal((await (await serveKubelet(t, { anonymous: true, mode: "AlwaysAllow" })).get("/pods", "")).status, 200);
});

test("equal authorization requests are sent to the API server once", async (t) => {
  const { get, reviews } = await serveKubelet(t);
  await get("/pods");
  await get("/pods");
  assert.deepEqual(reviews, ["token admin", "access admin get proxy"]);
  await get("/metrics");
  assert.deepEqual(reviews.slice(2), ["access admin get metrics"]);
});

test("a client certificate authenticates its CommonName; one of another CA, or a serving certificate, does not authenticate", async (t) => {
  const [ca, other] = await Promise.all([newCa({ commonName: "clients" }), newCa({ commonName: "clients" })]);
  const serving = await newCertificate({ commonName: "node1", ips: ["127.0.0.1"], usages: ["server"], ca });
  const tls = { cert: serving.certPem, key: serving.keyPem, clientCa: ca.certPem };
  const { get, reviews } = await serveKubelet(t, { anonymous: true, tls, clientCa: newCertificatePool(ca.certPem, "test") });
  const as = async (commonName: string, signer = ca, usage: "client" | "server" = "client"): Promise<number> => {
    const pair = await newCertificate({ commonName, usages: [usage], ca: signer });
    return (await get("/pods", "", "GET", { ca: ca.certPem, cert: pair.certPem, key: pair.keyPem })).status;
  };
  assert.equal(await as("admin"), 200);
  assert.equal(await as("joe"), 403);
  assert.equal(await as("admin", other), 401);
  assert.equal(await as("admin", ca, "server"), 401);
  assert.deepEqual(reviews, ["access admin get proxy", "access joe get proxy"]);
  assert.equal((await get("/pods", "", "GET", { ca: ca.certPem })).status, 403, "without one it is system:anonymous");
});

test("the read-only port serves status without credentials, but no exec, attach or logs", async (t) => {
  const { get, reviews } = await serveKubelet(t, { readOnly: true });
  for (const path of ["/healthz", "/pods", "/stats/summary", "/metrics", "/metrics/cadvisor", "/metrics/resource"]) {
    assert.equal((await get(path, "")).status, 200, path);
  }
  for (const path of [
    "/exec/default/web/main",
    "/attach/default/web/main",
    "/run/default/web/main",
    "/portForward/default/web",
  ]) {
    for (const method of ["GET", "POST"]) assert.equal((await get(path, "", method)).status, 405, path);
  }
  for (const path of ["/containerLogs/default/web/main", "/runningpods/", "/configz", "/logs/"]) {
    assert.equal((await get(path, "")).status, 405, path);
  }
  assert.equal((await get("/debug/pprof/", "")).status, 404);
  assert.deepEqual(reviews, []);
});

for (const { method, path, want } of [
  { method: "GET", path: "/stats/summary", want: "get stats" },
  { method: "GET", path: "/metrics/cadvisor", want: "get metrics" },
  { method: "GET", path: "/logs/x", want: "get log" },
  { method: "POST", path: "/exec/a/b/c", want: "create proxy" },
  { method: "GET", path: "/statsx", want: "get proxy" },
  { method: "GET", path: "/spec/", want: "get spec" },
]) {
  test(`${method} ${path} is ${want}`, () => {
    const { verb, subresource } = attributesOf(method, path);
    assert.equal(`${verb} ${subresource}`, want);
  });
}

test("the health port answers /healthz without credentials, and nothing else", async (t) => {
  let problem: string | undefined;
  const server = await startHttpServer({
    port: 0,
    bindAddress: "127.0.0.1",
    handler: newHealthHandler(() => problem),
    log: discardLogger,
  });
  t.after(() => server.close(0));
  const get = async (path: string) => {
    const response = await fetch(`http://127.0.0.1:${server.port}${path}`);
    return { code: response.status, text: await response.text() };
  };
  assert.deepEqual(await get("/healthz"), { code: 200, text: "ok" });
  assert.equal((await get("/pods")).code, 404);
  problem = "sync loop is stuck";
  assert.deepEqual(await get("/healthz"), {
    code: 500,
    text: "[+]ping ok\n[+]log ok\n[-]syncloop failed: reason withheld\nhealthz check failed\n",
  });
  for (const check of ["ping", "log"]) assert.deepEqual(await get(`/healthz/${check}`), { code: 200, text: "ok" });
  assert.deepEqual(await get("/healthz/syncloop"), { code: 500, text: "internal server error: sync loop is stuck\n" });
  assert.equal((await get("/healthz/other")).code, 404);
});

test("/stats/summary reports the usage of a pod's volumes and of its ephemeral storage", async (t) => {
  const at = Date.parse("2026-01-01T00:00:00Z");
  const disk = { availableBytes: 50, capacityBytes: 100, inodes: 10, inodesFree: 5 };
  const { get, runtime, pod } = await serveKubelet(t, {
    volumes: [{ name: "scratch", at, usedBytes: 30, inodesUsed: 3, ...disk }],
  });
  const labels = { "io.kubernetes.pod.uid": "uid-1", "io.kubernetes.container.name": "main", "io.kubernetes.pod.name": "web" };
  const layer = { timestamp: at * 1e6, fsId: null, usedBytes: { value: 12 }, inodesUsed: { value: 2 } };
  const attributes = { id: "c", metadata: { name: "main", attempt: 0 }, labels, annotations: {} };
  const cpu = { timestamp: at * 1e6, usageCoreNanoSeconds: { value: 5 }, usageNanoCores: null };
  runtime.listContainerStats = async () => [{ attributes, cpu, memory: null, writableLayer: layer }];
  const [summary] = JSON.parse((await get("/stats/summary")).body).pods;
  assert.equal(summary.podRef.uid, pod.metadata.uid);
  assert.deepEqual(summary.volume, [{ time: "2026-01-01T00:00:00Z", name: "scratch", usedBytes: 30, inodesUsed: 3, ...disk }]);
  assert.partialDeepStrictEqual(summary["ephemeral-storage"], { usedBytes: 42, inodesUsed: 5 });
});

test("with PodAndContainerStatsFromCRI /stats/summary reports what the runtime measures of pods, if it does", async (t) => {
  const { get, runtime, pod } = await serveKubelet(t, { ofSandboxes: true });
  const [{ id } = { id: "" }] = await runtime.listPodSandboxes();
  const timestamp = Date.parse("2026-01-01T00:00:00Z") * 1e6;
  const time = "2026-01-01T00:00:00Z";
  const { name, namespace, uid } = pod.metadata;
  const labels = { "io.kubernetes.pod.uid": uid, "io.kubernetes.container.name": "main", "io.kubernetes.pod.name": name };
  const attributes = { id: "c", metadata: { name: "main", attempt: 0 }, labels, annotations: {} };
  const cpu = { timestamp, usageCoreNanoSeconds: { value: 5 }, usageNanoCores: null };
  const container = { attributes, cpu, memory: null, writableLayer: null };
  const none = { availableBytes: null, usageBytes: null, rssBytes: null, pageFaults: null, majorPageFaults: null };
  const eth0 = { name: "eth0", rxBytes: { value: 1 }, rxErrors: null, txBytes: { value: 2 }, txErrors: { value: 0 } };
  const linux = {
    cpu: { timestamp, usageCoreNanoSeconds: { value: 9 }, usageNanoCores: { value: 3 } },
    memory: { timestamp, workingSetBytes: { value: 7 }, ...none },
    network: { timestamp, defaultInterface: eth0, interfaces: [{ ...eth0, name: "lo" }] },
    process: { timestamp, processCount: { value: 4 } },
    containers: [container],
  };
  const sandbox = { id, metadata: { name, namespace, uid, attempt: 0 }, labels: {}, annotations: {} };
  const ended = { attributes: { ...sandbox, id: "ended" }, linux: { ...linux, process: null }, windows: null };
  runtime.listPodSandboxStats = async () => [{ attributes: sandbox, linux, windows: null }, ended];
  const summary = async () => JSON.parse((await get("/stats/summary")).body).pods[0];
  const reported = await summary();
  assert.deepEqual(reported.cpu, { time, usageNanoCores: 3, usageCoreNanoSeconds: 9 });
  assert.deepEqual(reported.memory, { time, workingSetBytes: 7 });
  const counters = { rxBytes: 1, txBytes: 2, txErrors: 0 };
  assert.deepEqual(reported.network, { time, name: "eth0", ...counters, interfaces: [{ name: "lo", ...counters }] });
  assert.deepEqual(reported.process_stats, { process_count: 4 });
  const alone = { network: { ...linux.network, interfaces: [] }, process: { timestamp, processCount: { value: 0 } } };
  runtime.listPodSandboxStats = async () => [{ attributes: sandbox, linux: { ...linux, ...alone }, windows: null }];
  const other = await summary();
  assert.deepEqual([other.network, other.process_stats], [{ time, name: "eth0", ...counters }, { process_count: 0 }]);
  assert.deepEqual([reported.containers[0].name, reported.containers[0].cpu.usageCoreNanoSeconds], ["main", 5]);

  runtime.listPodSandboxStats = async () => {
    throw new RuntimeError("Unimplemented", "unknown method ListPodSandboxStats");
  };
  runtime.listContainerStats = async () => [container];
  assert.deepEqual((await summary()).cpu.usageCoreNanoSeconds, 5, "the sum of its containers");
});

test("with PodAndContainerStatsFromCRI a runtime that fails is no runtime without statistics of pods", async (t) => {
  const { get, runtime } = await serveKubelet(t, { ofSandboxes: true });
  runtime.listPodSandboxStats = () => Promise.reject(new RuntimeError("Unavailable", "away"));
  assert.deepEqual(await get("/stats/summary"), { status: 500, body: "rpc error: code = Unavailable desc = away\n" });
});

test("/metrics/probes has the results of probes, which /metrics does not have", async (t) => {
  const { get } = await serveKubelet(t);
  assert.match((await get("/metrics/probes")).body, /^prober_probe_total\{/m);
  assert.doesNotMatch((await get("/metrics")).body, /prober_probe_total/);
});

test("without the token webhook a token is not reviewed, and its user is unknown", async (t) => {
  const { get, reviews } = await serveKubelet(t, { tokenWebhook: false });
  assert.deepEqual([(await get("/pods")).status, reviews], [401, []]);
});

/** A handler with few parts, and an exchange that records what it answers. */
function handling(context: Partial<ServerContext>, exchange: Partial<Exchange>) {
  const did: unknown[] = [];
  const handle = newKubeletHandler({ auth: undefined, log: discardLogger, debuggingHandlers: true, ...context } as ServerContext);
  const respond = (status: number, _headers: object, body: string) => void did.push([status, body]);
  const given = { method: "GET", headersSent: false, respond, destroy: () => void did.push("destroyed"), ...exchange };
  return { did, handled: handle(given as unknown as Exchange) };
}

test("a request that fails after the head of its answer was sent is cut off", async () => {
  const runtime = newFakeRuntime(newFakeClock());
  runtime.listContainers = () => Promise.reject(new RuntimeError("Unavailable", "away"));
  const { did, handled } = handling({ runtime }, { url: "/runningpods/", headersSent: true });
  await handled;
  assert.deepEqual(did, ["destroyed"]);
});

test("/pods shows a pod's own status until the agent has one, and an empty one if it has none", async () => {
  const pods = [
    aNodePod({}, {}, { phase: "Failed" }),
    aNodePod({}, { name: "new" }),
    aNodePod({}, { name: "known" }, { phase: "Failed" }),
  ];
  const statusOf: ServerContext["statusOf"] = ({ metadata }) => (metadata.name === "known" ? { phase: "Running" } : undefined);
  let body = "";
  const add = (chunk?: Buffer | string): boolean => {
    body += chunk ?? "";
    return true;
  };
  const stream = () => ({ write: add, end: add, drained: async () => {} });
  await handling({ pods: () => pods, statusOf }, { url: "/pods", stream }).handled;
  assert.deepEqual(
    JSON.parse(body).items.map(({ status }: { status: object }) => status),
    [{ phase: "Failed" }, {}, { phase: "Running" }],
  );
});

test("access is that to the agent's own node", async () => {
  const reviewed: unknown[] = [];
  const client = {
    async create(_: unknown, { spec }: { spec: { resourceAttributes?: object } }) {
      if (spec.resourceAttributes === undefined) return { status: { authenticated: true, user: { username: "joe" } } };
      reviewed.push(spec.resourceAttributes);
      return { status: { allowed: true } };
    },
  } as unknown as Client;
  const times = { tokenTtlMs: 0, authorizedTtlMs: 0, unauthorizedTtlMs: 0 };
  const ways = { anonymous: false, tokenWebhook: true, clientCa: undefined, mode: "Webhook" } as const;
  const parts = { client, clock: newFakeClock(), log: discardLogger, metrics: newMetricsRegistry(), nodeName: "node1" };
  const auth = newAuth({ ...parts, ...ways, ...times });
  const headers = { authorization: "Bearer x" };
  const exchange = { method: "GET", url: "/pods", headers, rawHeaders: [], tls: undefined } as unknown as Exchange;
  assert.equal((await auth.check(exchange, "/pods")).allowed, true);
  const attributes = { verb: "get", resource: "nodes", version: "v1", subresource: "proxy", name: "node1" };
  assert.deepEqual(reviewed, [attributes]);
});

test("/pods shows the agent's pods with their current status", async (t) => {
  const { get } = await serveKubelet(t);
  const list = JSON.parse((await get("/pods")).body);
  assert.equal(list.kind, "PodList");
  assert.partialDeepStrictEqual(list.items[0], { metadata: { name: "web" }, status: { phase: "Running" } });
});

test("/runningpods/ lists the runtime's running pods, /configz shows the configuration, /debug the profiles", async (t) => {
  const { get } = await serveKubelet(t);
  assert.deepEqual(JSON.parse((await get("/runningpods/")).body), {
    kind: "PodList",
    apiVersion: "v1",
    metadata: {},
    items: [
      {
        metadata: { name: "web", namespace: "default", uid: "uid-1", creationTimestamp: null },
        spec: { containers: [{ name: "main", image: "sha256:registry.test/busybox:1", resources: {} }] },
        status: {},
      },
    ],
  });
  assert.deepEqual(JSON.parse((await get("/configz")).body), { kubeletconfig: { port: 1 } });
  const index = await get("/debug/pprof/");
  assert.equal(index.status, 200);
  assert.match(index.body, /heap/);
  assert.match((await get("/debug/pprof/cmdline")).body, /node/);
  assert.equal((await get("/debug/flags/v")).status, 406, "the verbosity is set by PUT");
});

for (const { path, status, body } of [
  { path: "/healthz", status: 200, body: "ok" },
  { path: "/healthz/syncloop", status: 200, body: "ok" },
  { path: "/healthz/other", status: 404, body: "404 page not found\n" },
  { path: "/nothing", status: 404, body: "404 page not found\n" },
  { path: "/stats", status: 404, body: "404 page not found\n" },
  { path: "/stats/container", status: 404, body: "404 page not found\n" },
  { path: "/metrics/other", status: 404, body: "404 page not found\n" },
  { path: "/exec/default/web?command=ls&output=1", status: 500, body: 'container not found ("")' },
  { path: "/logs/../../etc/passwd", status: 400, body: "400 Bad Request\n" },
  { path: "/logs/%5cetc", status: 400, body: "400 Bad Request\n" },
  { path: "/logs/syslog", status: 405, body: "logs endpoint is disabled.\n" },
  { path: "/containerLogs/default/none/main", status: 404, body: 'pod "none" does not exist\n' },
  { path: "/containerLogs/default/web/none", status: 404, body: 'container "none" not found in pod "web"\n' },
  {
    path: "/containerLogs/default/web/main?tailLines=-1",
    status: 422,
    body: '{"message": "Invalid request: tailLines: must be greater than or equal to 0"}',
  },
  {
    path: "/containerLogs/default/web/main?previous=1",
    status: 400,
    body: 'previous terminated container "main" in pod "web" not found',
  },
  { path: "/exec/default/web/main?command=ls", status: 400, body: "you must specify at least 1 of stdin, stdout, stderr" },
  { path: "/exec/default/web/none?command=ls&output=1", status: 500, body: 'container not found ("none")' },
  { path: "/exec/default/none/main?command=ls&output=1", status: 404, body: "pod does not exist" },
  { path: "/exec/default/web/other-uid/main?command=ls&output=1", status: 404, body: "pod does not exist" },
  { path: "/exec/default/web/uid-2/main?command=ls&output=1", status: 404, body: "pod does not exist" },
  { path: "/exec/default/web/uid-1/main?command=ls&error=true", status: 400, body: "Upgrade request required" },
  { path: "/attach/default/web/main?error=1&tty=1", status: 400, body: "you must specify at least 1 of stdin, stdout, stderr" },
  { path: "/exec/default/web/main?command=ls&output=1", status: 400, body: "Upgrade request required" },
]) {
  test(`GET ${path} answers ${status}`, async (t) => {
    const { get } = await serveKubelet(t);
    assert.deepEqual(await get(path), { status, body });
  });
}

for (const method of ["POST", "PUT"]) {
  test(`${method} of a manifest is not served`, async (t) => {
    const { get } = await serveKubelet(t);
    for (const path of ["/container", "/manifest", "/manifests"])
      assert.equal((await get(path, undefined, method)).status, 404, path);
    assert.equal(JSON.parse((await get("/pods")).body).items.length, 1);
  });
}

test("a command needs one list and the command itself from the runtime, and runs in the newest of the containers with that name", async (t) => {
  const { get, runtime } = await serveKubelet(t);
  const calls: string[] = [];
  const id = runtime.find("main")?.id ?? "";
  const list = runtime.listContainers;
  runtime.listContainers = async (filter) => {
    calls.push(`list ${JSON.stringify(filter)}`);
    const [main] = await list(filter);
    assert.ok(main);
    return [
      { ...main, id: "older", createdAt: main.createdAt - 1e9 },
      main,
      { ...main, id: "ended", createdAt: main.createdAt + 1e9, state: 2 },
    ];
  };
  for (const name of ["podSandboxStatus", "containerStatus", "listPodSandboxes"] as const) {
    t.mock.method(runtime, name, () => assert.fail(name));
  }
  runtime.execSync = async (containerId, command) => {
    calls.push(`${command.join(" ")} in ${containerId}`);
    return { stdout: Buffer.from("out"), stderr: Buffer.alloc(0), exitCode: 0 };
  };
  assert.deepEqual(await get("/run/default/web/main?cmd=ls+-l", "admin", "POST"), { status: 200, body: "out" });
  const ofPod = { "io.kubernetes.pod.namespace": "default", "io.kubernetes.pod.name": "web" };
  const labels = { ...ofPod, "io.kubernetes.container.name": "main" };
  assert.deepEqual(calls, [`list ${JSON.stringify({ labels })}`, `ls -l in ${id}`]);
});

test("a command for a recreated pod runs in the earlier pod's container until the new one has its own, unless it names the UID", async (t) => {
  const { get, runtime, pod } = await serveKubelet(t);
  runtime.onExec = (id) => ({ stdout: Buffer.from(id), stderr: Buffer.alloc(0), exitCode: 0 });
  const earlier = runtime.find("main")?.id ?? "";
  const uid = pod.metadata.uid;
  pod.metadata.uid = "recreated";
  assert.deepEqual(await get("/run/default/web/main?cmd=ls", "admin", "POST"), { status: 200, body: earlier });
  const missing = { status: 500, body: 'container not found ("main")' };
  assert.deepEqual(await get("/run/default/web/recreated/main?cmd=ls", "admin", "POST"), missing);
  assert.deepEqual(await get(`/run/default/web/${uid}/main?cmd=ls`, "admin", "POST"), {
    status: 404,
    body: "pod does not exist",
  });
});

test("exec and run in an exited container are refused", async (t) => {
  const { get, runtime } = await serveKubelet(t);
  runtime.exit(runtime.find("main")?.id ?? "", 1);
  for (const what of ["exec/default/web/main?command=ls&output=1", "run/default/web/main?cmd=ls"]) {
    assert.deepEqual(await get(`/${what}`, "admin"), { status: 500, body: 'container not found ("main")' });
  }
});

test("a runtime that fails is answered with 500, and the next request is served", async (t) => {
  const { get, runtime } = await serveKubelet(t);
  const list = runtime.listContainers;
  runtime.listContainers = () => Promise.reject(new RuntimeError("Unavailable", "away"));
  assert.deepEqual(await get("/runningpods/"), { status: 500, body: "rpc error: code = Unavailable desc = away\n" });
  runtime.listContainers = list;
  assert.equal((await get("/runningpods/")).status, 200);
});

test("/runningpods/ skips exited pods and those of other programs, and only these", async (t) => {
  const { get, runtime } = await serveKubelet(t);
  const found = runtime.find("main");
  assert.ok(found);
  const [own] = await runtime.listContainers();
  const [box] = await runtime.listPodSandboxes();
  assert.ok(own && box);
  const foreign = { ...own, id: "x", labels: {} };
  const ended = { ...own, id: "y", state: 2, metadata: { name: "ended", attempt: 0 } };
  const second = { ...own, id: "z", metadata: { name: "second", attempt: 0 } };
  runtime.listContainers = async () => [foreign, ended, own, second];
  const stopped = { ...box, id: "b2", state: 1, labels: { ...box.labels, "io.kubernetes.pod.uid": "stopped" } };
  const empty = { ...box, id: "b3", labels: { ...box.labels, "io.kubernetes.pod.uid": "empty" } };
  runtime.listPodSandboxes = async () => [{ ...box, id: "b1", labels: {} }, stopped, box, empty];
  const { items } = JSON.parse((await get("/runningpods/")).body);
  const shown = items.map((pod: { metadata: { uid: string }; spec: { containers: { name: string }[] | null } }) => [
    pod.metadata.uid,
    pod.spec.containers?.map(({ name }) => name) ?? null,
  ]);
  assert.deepEqual(shown, [
    ["uid-1", ["main", "second"]],
    ["empty", null],
  ]);
});

for (const { exitCode, want } of [
  { exitCode: 0, want: { status: 200, body: "out err" } },
  { exitCode: 3, want: { status: 500, body: "out errcommand terminated with exit code 3" } },
]) {
  test(`/run answers with the output of a command that exits with ${exitCode}`, async (t) => {
    const { get, runtime } = await serveKubelet(t);
    const ran: unknown[] = [];
    runtime.onExec = (id, command) => {
      ran.push(id, command);
      return { stdout: Buffer.from("out "), stderr: Buffer.from("err"), exitCode };
    };
    assert.deepEqual(await get("/run/default/web/uid-1/main?cmd=ls%20%20-l", "admin", "POST"), want);
    assert.deepEqual(ran, [runtime.find("main")?.id, ["ls", "-l"]]);
  });
}

test("port forwarding is refused for invalid ports and for a pod without a running sandbox", async (t) => {
  const { port, get, runtime } = await serveKubelet(t);
  const requested: unknown[] = [];
  runtime.portForward = async (ask) => {
    requested.push(ask);
    throw new RuntimeError("Unavailable", "away");
  };
  const forward = (query: string) =>
    new Promise<number>((resolve, reject) => {
      const headers = { authorization: "Bearer admin", connection: "Upgrade", upgrade: "SPDY/3.1" };
      request({ host: "127.0.0.1", port, method: "POST", path: `/portForward/default/web?${query}`, headers }, (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      })
        .on("error", reject)
        .end();
    });
  assert.equal(await forward("port=0,80&port=65535&port=65536&port=x&port=443"), 500);
  const [{ id } = { id: "" }] = await runtime.listPodSandboxes();
  assert.deepEqual(requested, [{ podSandboxId: id, port: [80, 65_535, 443] }]);
  await runtime.stopPodSandbox(id);
  const { status, body } = await get("/portForward/default/web");
  assert.deepEqual([status, body.startsWith("failed to find sandboxID for pod ")], [500, true]);
});

test("CPU usage is a rate between two samples, of each container and of the pod", async (t) => {
  const { get, runtime } = await serveKubelet(t);
  const at = Date.parse("2026-01-01T00:00:00Z") * 1e6;
  const stats = (id: string, seconds: number, usedNs: number, uid = "uid-1") => {
    const labels = { "io.kubernetes.pod.uid": uid, "io.kubernetes.container.name": id, "io.kubernetes.pod.name": "web" };
    const timestamp = seconds < 0 ? 0 : at + seconds * 1e9;
    return {
      attributes: { id, metadata: { name: id, attempt: 0 }, labels, annotations: {} },
      cpu: { timestamp, usageCoreNanoSeconds: { value: usedNs }, usageNanoCores: null },
      memory: null,
      writableLayer: null,
    };
  };
  const look = async (...given: ReturnType<typeof stats>[]) => {
    runtime.listContainerStats = async () => given;
    const { pods } = JSON.parse((await get("/stats/summary")).body);
    const [{ containers, cpu }] = pods;
    const rates = containers.map((one: { cpu: { usageNanoCores: number } }) => one.cpu.usageNanoCores);
    return [pods.length, rates, cpu.usageNanoCores, cpu.usageCoreNanoSeconds];
  };
  assert.deepEqual(await look(stats("a", 0, 10), stats("b", 0, 20), stats("c", 0, 1, "gone"), stats("d", -1, 1)), [
    1,
    [0, 0],
    0,
    30,
  ]);
  assert.deepEqual(await look(stats("a", 2, 1010), stats("b", 1, 520)), [1, [500, 500], 1000, 1530]);
  assert.deepEqual(await look(stats("a", 2.5, 9999), stats("b", 3, 120)), [1, [500, 0], 500, 10_119], "too soon, and begun anew");
  assert.deepEqual(await look(stats("a", 4, 5010)), [1, [2000], 2000, 5010], "since the last rate");
});

test("volumes of claims and in memory do not count towards ephemeral storage", async (t) => {
  const usage = (name: string, usedBytes: number) => ({
    name,
    at: 0,
    usedBytes,
    inodesUsed: usedBytes,
    availableBytes: 1,
    capacityBytes: 1,
    inodes: 1,
    inodesFree: 1,
  });
  const { get, runtime, pod } = await serveKubelet(t, {
    volumes: [usage("data", 1), usage("fast", 2), usage("own", 4), usage("late", 8)],
  });
  pod.spec.volumes = [
    { name: "data", persistentVolumeClaim: { claimName: "disk" } },
    { name: "fast", emptyDir: { medium: "Memory" } },
    { name: "own", emptyDir: {} },
  ];
  const labels = { "io.kubernetes.pod.uid": "uid-1", "io.kubernetes.container.name": "main" };
  const attributes = { id: "c", metadata: { name: "main", attempt: 0 }, labels, annotations: {} };
  const cpu = { timestamp: 1, usageCoreNanoSeconds: null, usageNanoCores: null };
  runtime.listContainerStats = async () => [{ attributes, cpu, memory: null, writableLayer: null }];
  const [{ volume, ...rest }] = JSON.parse((await get("/stats/summary")).body).pods;
  const claims = volume.map(({ pvcRef }: { pvcRef?: { name: string } }) => pvcRef?.name);
  assert.deepEqual(claims, ["disk", undefined, undefined, undefined]);
  assert.partialDeepStrictEqual(rest["ephemeral-storage"], { usedBytes: 12, inodesUsed: 12 });
});

test("a request whose authorization fails is refused, with its attributes", async (t) => {
  const failing = (resource: string) =>
    newAuth({
      client: {
        async create(ref: { resource: string }) {
          if (ref.resource === resource) throw new Error("connect ECONNREFUSED");
          return { status: { authenticated: true, user: { username: "joe" } } };
        },
      } as unknown as Client,
      clock: newFakeClock(),
      log: discardLogger,
      nodeName: "node1",
      anonymous: true,
      tokenWebhook: true,
      tokenTtlMs: 0,
      clientCa: undefined,
      metrics: newMetricsRegistry(),
      mode: "Webhook",
      authorizedTtlMs: 0,
      unauthorizedTtlMs: 0,
    });
  for (const { resource, status, message } of [
    { resource: "tokenreviews", status: 401, message: "Unauthorized" },
    {
      resource: "subjectaccessreviews",
      status: 403,
      message: "Authorization error (user=joe, verb=get, resource=nodes, subresource=metrics)",
    },
  ]) {
    const server = await startHttpServer({
      port: 0,
      bindAddress: "127.0.0.1",
      log: discardLogger,
      async handler(exchange) {
        exchange.respond(200, {}, JSON.stringify(await failing(resource).check(exchange, "/metrics/cadvisor")));
      },
    });
    t.after(() => server.close(0));
    const answer = await fetch(`http://127.0.0.1:${server.port}/`, { headers: { authorization: "Bearer x" } });
    assert.deepEqual(await answer.json(), { allowed: false, status, message });
  }
});
