/** A pod's log through the complete API server, from a simulated kubelet. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import WebSocket from "ws";
import { startTestServer, type TestServer } from "../testing/start-test-server.ts";

const pods = "/api/v1/namespaces/default/pods";
const log = `${pods}/web/log`;
let server: TestServer;
/** A second server over the same objects that trusts a different kubelet CA. */
let distrustful: TestServer;
let directory: string;
let kubelet: Server;
/** The URLs requested from the kubelet. */
const requests: string[] = [];

before(async () => {
  const ca = await newCa({ commonName: "kubelet-ca" });
  const pair = await newCertificate({ commonName: "node", ips: ["127.0.0.1"], usages: ["server"], ca });
  kubelet = createServer({ cert: pair.certPem, key: pair.keyPem }, (request, response) => {
    requests.push(request.url ?? "");
    response.end("line 1\nline 2\n");
  });
  kubelet.listen(0, "127.0.0.1");
  await once(kubelet, "listening");
  directory = mkdtempSync(join(tmpdir(), "cox-pod-log-"));
  writeFileSync(join(directory, "ca.crt"), (await newCa({ commonName: "another-ca" })).certPem);
  server = await startTestServer(undefined);
  distrustful = await startTestServer(undefined, [
    `--etcd-prefix=${server.prefix}`,
    `--kubelet-certificate-authority=${join(directory, "ca.crt")}`,
  ]);
  const { port } = kubelet.address() as AddressInfo;
  await server.request("POST", "/api/v1/nodes", { metadata: { name: "n1" } });
  const status = {
    addresses: [{ type: "InternalIP", address: "127.0.0.1" }],
    daemonEndpoints: { kubeletEndpoint: { Port: port } },
  };
  const merge = { "content-type": "application/merge-patch+json" };
  await server.request("PATCH", "/api/v1/nodes/n1/status", { status }, merge);
  await server.request("POST", "/api/v1/namespaces/default/serviceaccounts", { metadata: { name: "default" } });
  for (const [name, nodeName] of [
    ["web", "n1"],
    ["pending", undefined],
  ]) {
    const spec = { nodeName, containers: [{ name: "main", image: "busybox" }] };
    assert.equal((await server.request("POST", pods, { metadata: { name }, spec })).code, 201);
  }
});
after(async () => {
  await Promise.all([server.stop(), distrustful.stop()]);
  rmSync(directory, { recursive: true });
  kubelet.closeAllConnections();
  kubelet.close();
});

test("a log is text, and its options go to the kubelet", async () => {
  const query = "container=main&tailLines=5&limitBytes=100&sinceSeconds=60&timestamps=true&previous=true&follow=false";
  const { code, headers, text } = await server.request("GET", `${log}?${query}`);
  assert.deepEqual([code, headers["content-type"], text], [200, "text/plain", "line 1\nline 2\n"]);
  assert.equal(
    requests.at(-1),
    "/containerLogs/default/web/main?previous=true&timestamps=true&sinceSeconds=60&tailLines=5&limitBytes=100",
  );
});

test("a kubelet of another authority is refused, unless insecureSkipTLSVerifyBackend says not to look", async () => {
  const refused = await distrustful.request("GET", log);
  assert.equal(refused.code, 500);
  assert.match(refused.body.message, /x509: certificate signed by unknown authority/);
  const taken = await distrustful.request("GET", `${log}?insecureSkipTLSVerifyBackend=true`);
  assert.deepEqual([taken.code, taken.text], [200, "line 1\nline 2\n"]);
});

test("a pod without a node has an empty log", async () => {
  assert.equal((await server.request("GET", `${pods}/pending/log`)).text, "");
});

for (const { query, code, message } of [
  {
    query: "sinceSeconds=1&sinceTime=2020-01-01T00:00:00Z",
    code: 422,
    message: 'PodLogOptions "web" is invalid: []: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified',
  },
  {
    query: "tailLines=-1",
    code: 422,
    message: 'PodLogOptions "web" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0',
  },
  {
    query: "limitBytes=0",
    code: 422,
    message: 'PodLogOptions "web" is invalid: limitBytes: Invalid value: 0: must be greater than 0',
  },
  {
    query: "sinceSeconds=0",
    code: 422,
    message: 'PodLogOptions "web" is invalid: sinceSeconds: Invalid value: 0: must be greater than 0',
  },
  { query: "tailLines=many", code: 400, message: 'strconv.ParseInt: parsing "many": invalid syntax' },
  { query: "container=none", code: 400, message: "container none is not valid for pod web" },
]) {
  test(`a log with ${query} is ${code}`, async () => {
    const { body } = await server.request("GET", `${log}?${query}`);
    assert.deepEqual([body.code, body.message], [code, message]);
  });
}

for (const { protocol, text } of [
  { protocol: undefined, text: "line 1\nline 2\n" },
  { protocol: "binary.k8s.io", text: "line 1\nline 2\n" },
  { protocol: "base64.binary.k8s.io", text: Buffer.from("line 1\nline 2\n").toString("base64") },
]) {
  test(`a log over a WebSocket, ${protocol ?? "without a protocol"}`, async () => {
    const socket = new WebSocket(server.url.replace("https", "wss") + log, protocol === undefined ? [] : [protocol], {
      ca: server.ca,
      headers: { authorization: `Bearer ${server.adminToken}` },
    });
    let received = "";
    let closed = false;
    socket.on("message", (data) => {
      received += String(data);
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      closed = true;
    });
    await waitFor(() => closed);
    assert.equal(received, text);
  });
}
