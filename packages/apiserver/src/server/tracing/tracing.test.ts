import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { startEtcd } from "@coxswain/apimachinery/testing/etcd";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { parseTraceparent } from "../../request/trace.ts";
import { startHookServer } from "../../testing/start-hook-server.ts";
import { startTestServer } from "../../testing/start-test-server.ts";
import { startTraceCollector } from "../../testing/trace-collector.ts";
import { readTracingConfiguration } from "./configuration.ts";

function configuration(t: TestContext, text: string): string {
  const dir = mkdtempSync(join(tmpdir(), "cox-tracing-"));
  t.after(() => rmSync(dir, { recursive: true }));
  const path = join(dir, "tracing.yaml");
  writeFileSync(path, `apiVersion: apiserver.config.k8s.io/v1alpha1\nkind: TracingConfiguration\n${text}`);
  return path;
}

async function traced(t: TestContext, perMillion: number) {
  const collector = await startTraceCollector();
  t.after(collector.stop);
  const file = configuration(t, `endpoint: ${collector.endpoint}\nsamplingRatePerMillion: ${perMillion}\n`);
  const heard = await startListener(t);
  const flags = ["--feature-gates=APIServerTracing=true", `--tracing-config-file=${file}`];
  const server = await startTestServer(t, [...flags, `--etcd-servers=${heard.endpoint}`]);
  return { collector, server, heard };
}

/** A TCP proxy before etcd that records the trace contexts in its traffic. */
async function startListener(t: TestContext) {
  const etcd = await startEtcd();
  const heard = { endpoint: "", parents: new Set<string>() };
  let text = "";
  const listener = createServer((socket) => {
    const behind = connect(Number(new URL(etcd.endpoint).port), "127.0.0.1");
    for (const end of [socket, behind]) end.on("error", () => {});
    socket.on("data", (chunk: Buffer) => {
      text = text.slice(-100) + chunk.toString("latin1");
      for (const [parent] of text.matchAll(/00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]/g)) heard.parents.add(parent);
    });
    socket.pipe(behind).pipe(socket);
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  t.after(() => void listener.close());
  heard.endpoint = `http://127.0.0.1:${(listener.address() as AddressInfo).port}`;
  return heard;
}

test("requests and their etcd calls are traced, webhooks get the trace context, clients are linked", async (t) => {
  const { collector, server, heard } = await traced(t, 1_000_000);
  const hook = await startHookServer();
  t.after(hook.stop);
  hook.answers.set("/allow", () => ({ allowed: true }));
  await server.request("POST", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", {
    metadata: { name: "w" },
    webhooks: [
      {
        name: "w.example.com",
        clientConfig: { url: `${hook.url}/allow`, caBundle: hook.caBundle },
        rules: [{ operations: ["CREATE"], apiGroups: [""], apiVersions: ["v1"], resources: ["configmaps"] }],
        sideEffects: "None",
        admissionReviewVersions: ["v1"],
      },
    ],
  });
  const client = "0af7651916cd43dd8448eb211c80319c";
  const path = "/api/v1/namespaces/default/configmaps";
  await waitFor(
    async () => {
      await server.request(
        "POST",
        path,
        { metadata: { generateName: "m-" } },
        { traceparent: `00-${client}-b7ad6b7169203331-01` },
      );
      return hook.requested.length > 0;
    },
    { what: "the webhook to be known" },
  );
  await server.stop(); // exports the queued spans

  const reported = parseTraceparent(hook.requested[0]?.headers["traceparent"]);
  const request = collector.spans.find(({ spanId }) => spanId === reported?.spanId);
  assert.deepEqual(
    [request?.name, request?.kind, request?.traceId, request?.parentSpanId, request?.links],
    ["KubernetesAPI", 2, reported?.traceId, "", [client]],
  );
  assert.partialDeepStrictEqual(request?.attributes, {
    "http.method": "POST",
    "http.target": path,
    "http.status_code": 201,
    "http.scheme": "https",
  });
  const writes = collector.spans.filter(({ parentSpanId }) => parentSpanId === request?.spanId);
  const write = writes.find(({ name }) => name === "etcdserverpb.KV/Txn");
  assert.deepEqual([write?.kind, write?.traceId, write?.attributes["rpc.grpc.status_code"]], [3, request?.traceId, 0]);
  assert.ok(heard.parents.has(`00-${write?.traceId}-${write?.spanId}-01`), "etcd gets the trace context");
  assert.ok((write?.tookMs ?? -1) <= (request?.tookMs ?? -1), "the request waits for etcd");
  assert.equal(collector.service["service.name"], "apiserver");
});

test("by default nothing is kept, whatever clients say", async (t) => {
  const { collector, server, heard } = await traced(t, 0);
  assert.equal((await server.request("GET", "/api/v1/namespaces", undefined, { traceparent })).code, 200);
  await server.stop();
  assert.deepEqual(collector.spans, []);
  assert.notDeepEqual([...heard.parents], []);
  assert.deepEqual(
    [...heard.parents].filter((parent) => !parent.endsWith("-00")),
    [],
    "etcd gets the unsampled flag",
  );
});

test("with the gate alone etcd gets the client's trace context, without it none", async (t) => {
  for (const { flags, want } of [
    { flags: ["--feature-gates=APIServerTracing=true"], want: [traceparent] },
    { flags: [], want: [] },
  ]) {
    const heard = await startListener(t);
    const server = await startTestServer(t, [...flags, `--etcd-servers=${heard.endpoint}`]);
    const made = await server.request("POST", "/api/v1/namespaces", { metadata: { name: "traced" } }, { traceparent });
    assert.equal(made.code, 201);
    await server.stop();
    assert.deepEqual([...heard.parents], want);
  }
});

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

for (const { text, message } of [
  { text: "samplingRatePerMillion: -1\n", message: /samplingRatePerMillion: Invalid value: -1: sampling rate must be positive$/ },
  {
    text: "samplingRatePerMillion: 1000001\n",
    message: /1000001: sampling rate per million must be less than or equal to one million$/,
  },
  {
    text: "endpoint: http://a:1\n",
    message: /endpoint: Invalid value: "http:\/\/a:1": unsupported scheme: http\. {2}Options are none/,
  },
  { text: "endpoint: 5\n", message: /^failed to read tracing config: .*: endpoint is not a string$/ },
  {
    text: "samplingRatePerMillion: a\n",
    message: /^failed to read tracing config: .*: samplingRatePerMillion is not an integer$/,
  },
  { text: "samplingRatePerMillion: 1.5\n", message: /: samplingRatePerMillion is not an integer$/ },
  { text: "endpoint: [\n", message: /^failed to read tracing config: unable to decode tracing configuration data: ./ },
  { text: "kind: Tracing\n", message: /^failed to read tracing config: unable to decode tracing configuration data: / },
]) {
  test(`a tracing configuration with ${text.trim()} ends the start`, (t) => {
    assert.throws(() => readTracingConfiguration(configuration(t, text)), { message });
  });
}

for (const endpoint of ["a:1", "dns:///a:1", "unix:///run/a.sock", "unix-abstract://a"]) {
  for (const samplingRatePerMillion of [0, 1_000_000]) {
    test(`a tracing configuration may name ${endpoint} and ${samplingRatePerMillion} in a million`, (t) => {
      const text = `endpoint: ${endpoint}\nsamplingRatePerMillion: ${samplingRatePerMillion}\n`;
      assert.deepEqual(readTracingConfiguration(configuration(t, text)), { endpoint, samplingRatePerMillion });
    });
  }
}

test("a tracing configuration may leave out everything", (t) => {
  assert.deepEqual(readTracingConfiguration(configuration(t, "")), { endpoint: "localhost:4317", samplingRatePerMillion: 0 });
  assert.throws(() => readTracingConfiguration("/no/such"), { message: "tracing-config-file /no/such does not exist" });
});

const [traceId, spanId] = ["0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"];
for (const { text, want } of [
  { text: `00-${traceId}-${spanId}-01`, want: { traceId, spanId, sampled: true } },
  { text: `00-${traceId}-${spanId}-00`, want: { traceId, spanId, sampled: false } },
  { text: `01-${traceId}-${spanId}-01-more`, want: { traceId, spanId, sampled: true } },
  { text: `00-${traceId}-${spanId}-01-more`, want: undefined },
  { text: `ff-${traceId}-${spanId}-01`, want: undefined },
  { text: `00-${"0".repeat(32)}-${spanId}-01`, want: undefined },
  { text: `00-${traceId.toUpperCase()}-${spanId}-01`, want: undefined },
  { text: undefined, want: undefined },
]) {
  test(`traceparent ${text} is ${want ? "read" : "nothing"}`, () => assert.deepEqual(parseTraceparent(text), want));
}
