/** Flags about connections to kubelets, observed by a simulated kubelet. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { createServer, request } from "node:https";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { after, before, test } from "node:test";
import type { TLSSocket } from "node:tls";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { startTestServer, type TestServer } from "../testing/start-test-server.ts";

const pods = "/api/v1/namespaces/default/pods";
const directory = mkdtempSync(join(tmpdir(), "cox-kubelet-flags-"));
/** A connection to it is made and never becomes TLS. */
const silent = createTcpServer(() => {}).listen(0, "127.0.0.1");
await once(silent, "listening");
const shown: unknown[] = [];
/** Bytes that the kubelet sends into an exec. */
const sentBytes = 6_000;
let kubelet: ReturnType<typeof createServer>;
let server: TestServer;

before(async () => {
  const ca = await newCa({ commonName: "kubelet-ca" });
  const own = await newCertificate({ commonName: "node", ips: ["127.0.0.1"], usages: ["server"], ca });
  const client = await newCertificate({ commonName: "apiserver-kubelet-client", usages: ["client"], ca });
  const file = (name: string, text: string): string => {
    writeFileSync(join(directory, name), text, { mode: 0o600 });
    return join(directory, name);
  };
  const tls = { cert: own.certPem, key: own.keyPem, ca: ca.certPem, requestCert: true };
  kubelet = createServer(tls, ({ socket }, response) => {
    shown.push((socket as TLSSocket).getPeerCertificate().subject?.CN);
    response.end("a log");
  });
  kubelet.on("upgrade", (_request, socket: Duplex) => {
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n");
    socket.write(Buffer.alloc(sentBytes));
  });
  kubelet.listen(0, "127.0.0.1");
  await once(kubelet, "listening");
  server = await startTestServer(undefined, [
    "--kubelet-timeout=2s",
    "--max-connection-bytes-per-sec=20000",
    "--kubelet-preferred-address-types=ExternalIP,InternalIP",
    `--kubelet-port=${(silent.address() as AddressInfo).port}`,
    `--kubelet-certificate-authority=${file("ca.crt", ca.certPem)}`,
    `--kubelet-client-certificate=${file("client.crt", client.certPem)}`,
    `--kubelet-client-key=${file("client.key", client.keyPem)}`,
    "--default-not-ready-toleration-seconds=11",
    "--default-unreachable-toleration-seconds=22",
    "--disable-admission-plugins=ServiceAccount",
  ]);
  const { port } = kubelet.address() as AddressInfo;
  for (const [name, addresses, Port] of [
    ["awake", { InternalIP: "192.0.2.1", ExternalIP: "127.0.0.1" }, port],
    ["silent", { InternalIP: "127.0.0.1" }, 0],
  ] as const) {
    const status = {
      addresses: Object.entries(addresses).map(([type, address]) => ({ type, address })),
      daemonEndpoints: { kubeletEndpoint: { Port } },
    };
    assert.equal((await server.request("POST", "/api/v1/nodes", { metadata: { name }, status })).code, 201);
    const spec = { nodeName: name, containers: [{ name: "main", image: "busybox" }] };
    assert.equal((await server.request("POST", pods, { metadata: { name }, spec })).code, 201);
  }
});
after(async () => {
  await server.stop();
  kubelet.closeAllConnections();
  kubelet.close();
  silent.close();
  rmSync(directory, { recursive: true });
});

test("a kubelet is requested at the preferred address of its node, with the certificate of --kubelet-client-certificate", async () => {
  const { code, text } = await server.request("GET", `${pods}/awake/log`);
  assert.deepEqual([code, text, shown], [200, "a log", ["apiserver-kubelet-client"]]);
});

test("--kubelet-timeout: a kubelet that only connects is left, at --kubelet-port where its node names none", async () => {
  const began = performance.now();
  const { code, body } = await server.request("GET", `${pods}/silent/log`);
  assert.ok(performance.now() - began < 4_500, "without the flag it is five seconds");
  const { port } = silent.address() as AddressInfo;
  const want = `Get "https://127.0.0.1:${port}/containerLogs/default/silent/main": dial tcp 127.0.0.1:${port}: i/o timeout`;
  assert.deepEqual([code, body.message], [500, want]);
});

test("--max-connection-bytes-per-sec: an exec delivers no more than this, and its many listeners are no leak", async (t) => {
  const warnings: Error[] = [];
  const warned = (warning: Error): void => void warnings.push(warning);
  process.on("warning", warned);
  t.after(() => process.off("warning", warned));
  const client = request(`${server.url}${pods}/awake/exec?command=sh`, {
    method: "POST",
    ca: server.ca,
    headers: { connection: "Upgrade", upgrade: "SPDY/3.1", authorization: `Bearer ${server.adminToken}` },
  });
  client.end();
  const [, socket, first] = (await once(client, "upgrade")) as [IncomingMessage, Duplex, Buffer];
  const began = performance.now();
  let bytes = first.length;
  for await (const chunk of socket) {
    bytes += chunk.length;
    if (bytes === sentBytes) break;
  }
  assert.ok(performance.now() - began >= 150, "0.3 s, of which some may have passed before");
  assert.deepEqual(warnings, []);
});

test("--default-not-ready-toleration-seconds and --default-unreachable-toleration-seconds are those of a pod that gives none", async () => {
  const { tolerations } = (await server.request("GET", `${pods}/awake`)).body.spec;
  assert.deepEqual(
    tolerations.map(({ key, tolerationSeconds }: { key: string; tolerationSeconds: number }) => [key, tolerationSeconds]),
    [
      ["node.kubernetes.io/not-ready", 11],
      ["node.kubernetes.io/unreachable", 22],
    ],
  );
});
