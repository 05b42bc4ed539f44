/** --egress-selector-config-file: all connections to the cluster use the proxy, and no others do. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer, type IncomingMessage, type RequestListener } from "node:http";
import { createServer, request as httpsRequest } from "node:https";
import type { AddressInfo, Server, Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { newCa, newCertificate } from "@coxswain/apimachinery/serving/certificates";
import { asyncListener } from "@coxswain/apimachinery/testing/async-listener";
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import { type EgressProxy, startConnectProxy, startKonnectivityServer } from "../testing/egress-proxies.ts";
import { refusalByWebhook } from "../testing/refusing-webhook.ts";
import { startTestServer, type TestServer } from "../testing/start-test-server.ts";

const directory = mkdtempSync(join(tmpdir(), "cox-egress-"));
const file = (name: string): string => join(directory, name);
after(() => rmSync(directory, { recursive: true }));

function egress(proxyProtocol: string, transport: string): string {
  const path = file("egress.yaml");
  const head = "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections:\n";
  writeFileSync(path, `${head}- {name: cluster, connection: {proxyProtocol: ${proxyProtocol}, transport: ${transport}}}\n`);
  return `--egress-selector-config-file=${path}`;
}

for (const { proxyProtocol, startProxy } of [
  { proxyProtocol: "HTTPConnect", startProxy: startConnectProxy },
  { proxyProtocol: "GRPC", startProxy: startKonnectivityServer },
]) {
  suite(`over ${proxyProtocol}`, () => {
    /** The local port that the proxy connects to, by requested address. */
    const ports = new Map<string, number>();
    const servers: Server[] = [];
    const open = new Set<Socket>();
    let proxy: EgressProxy;
    let server: TestServer;
    let caBundle: string;

    async function listening(one: Server): Promise<number> {
      servers.push(one);
      one.on("connection", (socket: Socket) => open.add(socket));
      one.listen(0, "127.0.0.1");
      await once(one, "listening");
      return (one.address() as AddressInfo).port;
    }

    before(async () => {
      const ca = await newCa({ commonName: "cluster" });
      caBundle = Buffer.from(ca.certPem).toString("base64");
      const pair = await newCertificate({
        commonName: "x",
        dnsNames: ["hook.default.svc", "other.default.svc"],
        ips: ["192.0.2.77"],
        usages: ["server"],
        ca,
      });
      const secure = (listener: RequestListener) => createServer({ cert: pair.certPem, key: pair.keyPem }, listener);
      const hook = secure(
        asyncListener(async (request, response) => {
          const chunks: Buffer[] = [];
          for await (const chunk of request) chunks.push(chunk as Buffer);
          const { apiVersion, kind, request: review } = JSON.parse(Buffer.concat(chunks).toString());
          response.end(
            JSON.stringify({ apiVersion, kind, response: { uid: review.uid, allowed: false, status: { message: "seen" } } }),
          );
        }),
      );
      const other = secure((request, response) => {
        response.setHeader("content-type", "application/json");
        response.end(
          JSON.stringify({ kind: "APIResourceList", groupVersion: "other.example.com/v1", resources: [], path: request.url }),
        );
      });
      const kubelet = secure((_request, response) => response.end("line\n"));
      kubelet.on("upgrade", (_request, socket) => {
        socket.write("HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: SPDY/3.1\r\n\r\n");
        socket.pipe(socket);
      });
      const pod = createHttpServer((_request, response) => response.end("hello"));
      ports.set("192.0.2.77:10250", await listening(kubelet));
      ports.set("192.0.2.78:8080", await listening(pod));
      const at = file(`${proxyProtocol}.sock`);
      proxy = await startProxy({ at, portOf: (target) => ports.get(target) });
      server = await startTestServer(undefined, [egress(proxyProtocol, `{uds: {udsName: ${at}}}`)]);
      for (const [name, backend] of [
        ["hook", hook],
        ["other", other],
      ] as const) {
        const service = await server.request("POST", "/api/v1/namespaces/default/services", {
          metadata: { name },
          spec: { ports: [{ port: 443 }] },
        });
        ports.set(`${service.body.spec.clusterIP}:443`, await listening(backend));
      }
      const merge = { "content-type": "application/merge-patch+json" };
      const setStatus = (path: string, status: object) => server.request("PATCH", `${path}/status`, { status }, merge);
      await server.request("POST", "/api/v1/nodes", { metadata: { name: "n1" } });
      await setStatus("/api/v1/nodes/n1", { addresses: [{ type: "InternalIP", address: "192.0.2.77" }] });
      await server.request("POST", "/api/v1/namespaces/default/serviceaccounts", { metadata: { name: "default" } });
      const pods = "/api/v1/namespaces/default/pods";
      await server.request("POST", pods, {
        metadata: { name: "web" },
        spec: { nodeName: "n1", containers: [{ name: "c", image: "i" }] },
      });
      await setStatus(`${pods}/web`, { podIP: "192.0.2.78", podIPs: [{ ip: "192.0.2.78" }] });
    });

    after(async () => {
      await server.stop();
      await proxy.stop();
      for (const one of servers) one.close();
      for (const socket of open) socket.destroy();
    });

    test("a log comes from the kubelet through the proxy, which is a unix socket", async () => {
      const { code, text } = await server.request("GET", "/api/v1/namespaces/default/pods/web/log");
      assert.deepEqual([code, text], [200, "line\n"]);
      assert.ok(proxy.requested.includes("192.0.2.77:10250"));
    });

    test("a pod is reached through the proxy, without TLS too", async () => {
      const { code, text } = await server.request("GET", "/api/v1/namespaces/default/pods/web:8080/proxy/");
      assert.deepEqual([code, text], [200, "hello"]);
      assert.ok(proxy.requested.includes("192.0.2.78:8080"));
    });

    test("an upgraded connection to the kubelet passes through the proxy, both ways", async () => {
      const request = httpsRequest(`${server.url}/api/v1/namespaces/default/pods/web/attach`, {
        method: "POST",
        ca: server.ca,
        headers: { authorization: `Bearer ${server.adminToken}`, connection: "upgrade", upgrade: "SPDY/3.1" },
      });
      request.end();
      const [answer, socket] = (await once(request, "upgrade")) as [IncomingMessage, Socket];
      assert.equal(answer.statusCode, 101);
      socket.write("ping");
      const [echoed] = await once(socket, "data");
      assert.equal(String(echoed), "ping");
      socket.destroy();
    });

    test("a webhook behind a service is called through the proxy, and its certificate is its own", async () => {
      const refusal = await refusalByWebhook(server, "hook", "secrets", {
        service: { namespace: "default", name: "hook" },
        caBundle,
      });
      assert.match(refusal, /admission webhook "hook.example.com" denied the request: seen/);
    });

    test("this server's own service is not looked for behind the proxy", async () => {
      const refusal = await refusalByWebhook(server, "self", "limitranges", {
        service: { namespace: "default", name: "kubernetes", path: "/nowhere" },
        caBundle,
      });
      assert.match(refusal, /failed calling webhook "self.example.com"/);
      assert.deepEqual(
        proxy.requested.filter((target) => target.endsWith(`:${server.port}`)),
        [],
      );
    });

    test("a server behind an APIService is queried through the proxy", async () => {
      await server.request("POST", "/api/v1/namespaces/default/endpoints", {
        metadata: { name: "other" },
        subsets: [{ addresses: [{ ip: "192.0.2.79" }], ports: [{ port: 443 }] }],
      });
      await server.request("POST", "/apis/apiregistration.k8s.io/v1/apiservices", {
        metadata: { name: "v1.other.example.com" },
        spec: {
          group: "other.example.com",
          version: "v1",
          groupPriorityMinimum: 100,
          versionPriority: 100,
          service: { namespace: "default", name: "other" },
          caBundle,
        },
      });
      const { body } = await waitFor(
        async () => [await server.request("GET", "/apis/other.example.com/v1")].find(({ code }) => code === 200),
        { what: "the other server" },
      );
      assert.equal(body.path, "/apis/other.example.com/v1");
    });
  });
}

test("a proxy over TCP that refuses: the request fails in its words, and is counted", async (t) => {
  const proxy = await startConnectProxy({ at: 0, portOf: () => undefined });
  t.after(() => proxy.stop());
  const server = await startTestServer(t, [egress("HTTPConnect", `{tcp: {url: "http://127.0.0.1:${proxy.port}"}}`)]);
  await server.request("POST", "/api/v1/nodes", {
    metadata: { name: "n1" },
    status: { addresses: [{ type: "InternalIP", address: "192.0.2.78" }] },
  });
  const { code, body } = await server.request("GET", "/api/v1/nodes/http:n1:8081/proxy/");
  assert.equal(code, 503);
  assert.equal(
    body.message,
    `error trying to reach service: proxy error from 127.0.0.1:${proxy.port} while dialing 192.0.2.78:8081, code 502: 502 Bad Gateway`,
  );
  assert.match(
    (await server.request("GET", "/metrics")).text,
    /^apiserver_egress_dialer_dial_failure_count\{protocol="http_connect",transport="tcp",stage="proxy"\} 1$/m,
  );
});

test("--tracing-config-file without its gate ends the start", async () => {
  await assert.rejects(startTestServer(undefined, [`--tracing-config-file=${file("tracing.yaml")}`]), {
    message: "APIServerTracing feature is not enabled, but tracing config file was provided",
  });
});
